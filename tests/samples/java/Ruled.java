/** Calls that rules change; prints what it gets. */
public class Ruled {
    static class Closed extends RuntimeException {
        Closed(String message) {
            super(message);
        }
    }

    static int runs;

    static int add(int left, int right) {
        runs++;
        return left + right;
    }

    static double scale(float by, double of) {
        runs++;
        return by * of;
    }

    static long price(long of, boolean isFree, byte tax, char unit, short more) {
        runs++;
        return isFree ? unit : of + tax + more;
    }

    static String name(int number) {
        runs++;
        return "number " + number;
    }

    static boolean open(String file) {
        runs++;
        return false;
    }

    static void write(int bytes) {
        runs++;
    }

    static int always() {
        runs++;
        return 1;
    }

    static String tried(int number) {
        try {
            write(number);
            return "written";
        } catch (Closed exception) {
            return exception.getClass().getName() + ": " + exception.getMessage();
        } catch (IllegalStateException exception) {
            return exception.getClass().getName();
        }
    }

    static int sum(int rounds) {
        int sum = 0;
        for (int i = 0; i < rounds; i++) {
            sum += add(i & 7, 1);
        }
        return sum;
    }

    public static void main(String[] arguments) {
        System.out.println(add(1, 2) + " " + add(3, 4));
        System.out.println(scale(2f, 3));
        System.out.println(price(10, false, (byte) 1, 'a', (short) 5));
        System.out.println(name(1) + ", " + name(2));
        System.out.println(open("there") + " " + tried(1) + ", " + tried(2) + ", " + tried(3));
        System.out.println(always());
        System.out.println(runs);
        System.out.println(sum(arguments.length > 0 ? Integer.parseInt(arguments[0]) : 8));
    }
}
