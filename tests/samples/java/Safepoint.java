import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;

/** Threads that call without end, and one that collects garbage when it is asked to. */
public class Safepoint {
    static volatile boolean isOver;
    static volatile int warm;

    static int leaf(int value) {
        return value + 1;
    }

    static int valued(int value) {
        return value + 1;
    }

    static void work(boolean withValues) {
        for (int i = 0; !isOver; i++) {
            warm = withValues ? valued(i) : leaf(i);
        }
    }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        Thread[] threads = new Thread[2];
        for (int i = 0; i < threads.length; i++) {
            boolean withValues = i == 1;
            threads[i] = new Thread(() -> work(withValues), "worker-" + i);
            threads[i].start();
        }
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = input.readLine(); line != null && !line.equals("end"); line = input.readLine()) {
            System.gc();
            System.out.println("collected");
        }
        isOver = true;
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("done");
    }
}
