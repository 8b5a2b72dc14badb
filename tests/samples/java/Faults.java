import java.util.ArrayList;
import java.util.List;

/** Stack overflows, no memory, Thread.stop and System.exit, each below methods with probes. */
public class Faults {
    static int depth;
    static volatile long entered;

    static int deep(int number) {
        depth = number;
        return deep(number + 1) + 1;
    }

    static void overflow() {
        for (int i = 0; i < 20; i++) {
            try {
                deep(0);
            } catch (StackOverflowError expected) {
                depth = 0;
            }
        }
    }

    static void hungry() {
        List<byte[]> kept = new ArrayList<>();
        try {
            while (true) {
                kept.add(new byte[1 << 20]);
            }
        } catch (OutOfMemoryError expected) {
            kept.clear();
        }
    }

    static void leaf() {
        entered++;
    }

    @SuppressWarnings("removal")
    static void stopped() throws InterruptedException {
        Thread thread = new Thread(() -> {
            try {
                while (true) {
                    leaf();
                }
            } catch (ThreadDeath expected) {
                depth = 1;
            }
        });
        thread.start();
        while (entered < 100000) {
            Thread.onSpinWait();
        }
        thread.stop();
        thread.join();
    }

    public static void main(String[] arguments) throws InterruptedException {
        overflow();
        hungry();
        stopped();
        System.out.println("done");
        System.exit(3);
    }
}
