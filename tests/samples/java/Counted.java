import java.util.concurrent.atomic.AtomicLong;
import java.util.function.IntUnaryOperator;

/** Counts its own calls: for each method that a tracer has to see, one increment. */
public class Counted {
    static final AtomicLong LEAVES = new AtomicLong(), THROWS = new AtomicLong(), LAMBDAS = new AtomicLong(),
            MADE = new AtomicLong(), SYNCHRONISED = new AtomicLong();

    static class Item {
        final int value;

        Item(int value) {
            this.value = value;
            MADE.incrementAndGet();
        }

        synchronized int twice() {
            SYNCHRONISED.incrementAndGet();
            return value * 2;
        }
    }

    static int leaf(int value) {
        LEAVES.incrementAndGet();
        return value + 1;
    }

    static int thrower(int value) {
        THROWS.incrementAndGet();
        if (value % 3 == 0) {
            throw new IllegalStateException("three");
        }
        return leaf(value);
    }

    static int catcher(int value) {
        try {
            return thrower(value);
        } catch (IllegalStateException exception) {
            return 0;
        }
    }

    static void work(int rounds) {
        IntUnaryOperator operator = value -> {
            LAMBDAS.incrementAndGet();
            return leaf(value);
        };
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            sum += catcher(i) + operator.applyAsInt(i) + new Item(i).twice();
        }
        if (sum == 42) {
            System.out.println("unlikely");
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        int rounds = Integer.parseInt(arguments[0]);
        Thread[] threads = new Thread[Integer.parseInt(arguments[1])];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> work(rounds), "worker-" + i);
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("leaf=" + LEAVES + " thrower=" + THROWS + " lambda=" + LAMBDAS + " item=" + MADE
                + " twice=" + SYNCHRONISED);
    }
}
