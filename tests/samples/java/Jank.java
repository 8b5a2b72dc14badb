import io.sojourn.Sojourn;
import java.io.IOException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** An event thread that is held up by another thread, which keeps a monitor while it works. */
public class Jank {
    static final long DEADLINE_MS = 100;
    static final Object STORE = new Object();
    static long sum;

    /** The guilty call: it keeps the store until standard input has something. */
    static void compact(CountDownLatch isHeld) throws IOException {
        synchronized (STORE) {
            isHeld.countDown();
            do {
                System.gc();
                squeeze(System.in.available());
            } while (System.in.available() == 0);
        }
    }

    static void squeeze(int number) {
        for (int i = 0; i < 100000; i++) {
            sum += number ^ i;
        }
    }

    static long read() {
        synchronized (STORE) {
            return sum;
        }
    }

    static void paint() {
        read();
    }

    static void idle() throws InterruptedException {
        synchronized (Jank.class) {
            Jank.class.wait();
        }
    }

    public static void main(String[] arguments) throws Exception {
        ExecutorService events = Executors.newSingleThreadExecutor(task -> new Thread(task, "events"));
        Thread idle = new Thread(() -> {
            try {
                idle();
            } catch (InterruptedException ended) {
                return;
            }
        }, "idle");
        idle.start();
        Sojourn.watch("events", events, DEADLINE_MS);
        for (int i = 0; i < 1000; i++) {
            events.submit(Jank::paint).get();
        }
        CountDownLatch isHeld = new CountDownLatch(1);
        Thread saver = new Thread(() -> {
            try {
                compact(isHeld);
            } catch (IOException failed) {
                sum = -1;
            }
        }, "saver");
        saver.start();
        isHeld.await();
        events.submit(Jank::paint).get();
        saver.join();
        idle.interrupt();
        idle.join();
        events.shutdown();
        System.out.println("done");
    }
}
