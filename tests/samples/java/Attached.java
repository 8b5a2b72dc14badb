import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;

/** A program that runs before it is attached to: does what each line of its input asks for, and says so.
 * With the argument "busy" threads work meanwhile, and check what they compute. */
public class Attached {
    static volatile boolean ends;
    static final AtomicLong WRONG = new AtomicLong(), ROUNDS = new AtomicLong();
    static CountDownLatch entered, released;
    static Thread holder;

    /** Loaded when it is first asked for. */
    static class Late {
        static int late(int value) {
            return value + 1;
        }
    }

    static int early(int depth) {
        return depth == 0 ? 0 : 1 + early(depth - 1);
    }

    static int thrower(int value) {
        throw new IllegalStateException("asked for " + value);
    }

    static int catcher(int value) {
        try {
            return thrower(value);
        } catch (IllegalStateException exception) {
            return 1;
        }
    }

    static void inner() {
    }

    /** Is open while an agent comes or goes. */
    static void held() {
        inner();
        entered.countDown();
        try {
            released.await();
        } catch (InterruptedException exception) {
            throw new IllegalStateException(exception);
        }
        inner();
    }

    static int fib(int n) {
        return n < 2 ? n : fib(n - 1) + fib(n - 2);
    }

    static synchronized long mixed(long seed) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 20; i++) {
            seed = seed * 6364136223846793005L + 1442695040888963407L;
            text.append((char) ('a' + (seed >>> 60)));
        }
        return text.toString().hashCode();
    }

    static void work() {
        while (!ends) {
            if (fib(15) != 610 || mixed(7) != mixed(7) || catcher(1) != 1) {
                WRONG.incrementAndGet();
            }
            ROUNDS.incrementAndGet();
        }
    }

    static void obey(String what, int times) throws InterruptedException {
        switch (what) {
        case "early":
            early(times);
            break;
        case "late":
            for (int i = 0; i < times; i++) {
                Late.late(i);
            }
            break;
        case "throw":
            for (int i = 0; i < times; i++) {
                catcher(i);
            }
            break;
        case "hold":
            entered = new CountDownLatch(1);
            released = new CountDownLatch(1);
            holder = new Thread(Attached::held, "holder");
            holder.start();
            entered.await();
            break;
        case "release":
            released.countDown();
            holder.join();
            break;
        case "hot":
            for (int i = 0; i < times; i++) {
                fib(20);
            }
            break;
        default:
            throw new IllegalArgumentException(what);
        }
    }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        Thread[] threads = new Thread[arguments.length != 0 ? 3 : 0];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(Attached::work, "worker-" + i);
            threads[i].start();
        }
        System.out.println("ready");
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("rounds")) {
                System.out.println("rounds " + ROUNDS);
                continue;
            }
            obey(words[0], Integer.parseInt(words[1]));
            System.out.println(line);
        }
        ends = true;
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("wrong=" + WRONG);
        System.exit(5);
    }
}
