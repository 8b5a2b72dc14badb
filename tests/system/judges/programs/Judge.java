/* What HotSpot does with signals, stacks and threads: implicit null checks, a stack that overflows, a
 * pool, collections, streams, an exception that nobody catches. Judge SIZE; ends with 3. */
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;

public class Judge {
    static int fib(int n) {
        return n < 2 ? n : fib(n - 1) + fib(n - 2);
    }

    static int deep(int n) {
        return deep(n + 1) + 1;
    }

    static void useThreads() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Future<Integer>> all = new ArrayList<>();
        int sum = 0;
        for (int i = 0; i < 40; i++) {
            int n = i % 18;
            all.add(pool.submit(() -> fib(n)));
        }
        for (Future<Integer> one : all) {
            sum += one.get();
        }
        pool.shutdown();
        System.out.println(sum);
        Thread thrower = new Thread(() -> {
            throw new IllegalStateException("thrown");
        });
        thrower.setUncaughtExceptionHandler((thread, thrown) -> System.out.println(thrown.getMessage()));
        thrower.start();
        thrower.join();
    }

    static void useSignals(Object nothing) {
        try {
            System.out.println(nothing.hashCode());
        } catch (NullPointerException e) {
            System.out.println("null caught");
        }
        try {
            System.out.println(deep(0));
        } catch (StackOverflowError e) {
            System.out.println("overflow caught");
        }
    }

    public static void main(String[] words) throws Exception {
        int size = Integer.parseInt(words[0]);
        Map<String, Integer> counts = new TreeMap<>();
        for (int i = 0; i < size; i++) {
            counts.merge("w" + i * 7919 % 101, 1, Integer::sum);
        }
        System.out.println(counts);
        useThreads();
        useSignals(null);
        for (int i = 0; i < 10; i++) {
            byte[][] junk = new byte[64][size];
            System.gc();
        }
        System.out.println(IntStream.range(0, size).parallel().mapToLong(i -> (long) i * i).sum());
        System.exit(3);
    }
}
