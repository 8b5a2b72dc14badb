/** A small shop on the JVM: sells orders, and asks a bank that is slow. Shop [ORDERS] */
public final class Shop {
    private static final int ITEMS = 400;
    private static final int LINES = 20;
    private static final int BANK_MS = 50;
    private final int[] prices = new int[ITEMS];

    private Shop() {
        for (int item = 0; item < ITEMS; item++) {
            prices[item] = item * 3 + 1;
        }
    }

    private int priceOf(int item) {
        return prices[item % ITEMS];
    }

    private int totalOf(int order) {
        int total = 0;
        for (int line = 0; line < LINES; line++) {
            total += priceOf(order * 31 + line * 7);
        }
        return total;
    }

    private boolean askBank(int total) throws InterruptedException {
        Thread.sleep(BANK_MS);
        return total > 0;
    }

    private boolean sell(int order) throws InterruptedException {
        final int total = totalOf(order);
        return order % 40 == 0 ? askBank(total) : total > 0;
    }

    public static void main(String[] words) throws InterruptedException {
        final int orders = words.length > 0 ? Integer.parseInt(words[0]) : 100;
        final Shop shop = new Shop();
        int sold = 0;
        for (int order = 1; order <= orders; order++) {
            sold += shop.sell(order) ? 1 : 0;
        }
        System.out.println(sold + " orders sold");
    }
}
