import java.lang.management.ManagementFactory;

/** What calls cost, as the program measures it itself inside and outside of each: a line a call, with its name, the
 *  least and the most CPU time and bytes. Then a line for each thread. */
public class Costs {
    static final com.sun.management.ThreadMXBean THREADS =
            (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
    static volatile Object kept;
    static volatile long sum;

    static final class Refused extends RuntimeException {
        Refused() {
            super("refused", null, false, false);
        }
    }

    /** CPU time and bytes of the calling thread, allocating nothing. */
    static void read(long[] into) {
        into[0] = THREADS.getCurrentThreadCpuTime();
        into[1] = THREADS.getThreadAllocatedBytes(Thread.currentThread().getId());
    }

    static void burn(int rounds, long[] start, long[] end) {
        read(start);
        for (int i = 0; i < rounds; i++) {
            sum += i * 31 ^ sum >>> 7;
        }
        read(end);
    }

    static void allocate(int bytes, long[] start, long[] end) {
        read(start);
        kept = new byte[bytes];
        read(end);
    }

    static void refuse(int bytes, long[] start, long[] end) {
        read(start);
        kept = new byte[bytes];
        read(end);
        throw new Refused();
    }

    static void again(int depth, long[] start, long[] end) {
        read(start);
        kept = new byte[10000];
        if (depth > 0) {
            again(depth - 1, new long[2], new long[2]);
        }
        read(end);
    }

    static void waiting(long[] start, long[] end) throws InterruptedException {
        read(start);
        Thread.sleep(20);
        read(end);
    }

    interface Call {
        void run(long[] start, long[] end) throws InterruptedException;
    }

    static void tell(String name, Call call) throws InterruptedException {
        long[] before = new long[2], start = new long[2], end = new long[2], after = new long[2];
        read(before);
        try {
            call.run(start, end);
        } catch (Refused refused) {
            kept = refused;
        }
        read(after);
        System.out.printf("%s %d %d %d %d%n", name, end[0] - start[0], after[0] - before[0], end[1] - start[1],
                after[1] - before[1]);
    }

    static void all() {
        try {
            tell("burn", (start, end) -> burn(3000000, start, end));
            tell("allocate", (start, end) -> allocate(1000000, start, end));
            tell("allocate", (start, end) -> allocate(100, start, end));
            tell("refuse", (start, end) -> refuse(50000, start, end));
            tell("again", (start, end) -> again(3, start, end));
            tell("waiting", Costs::waiting);
        } catch (InterruptedException impossible) {
            throw new IllegalStateException(impossible);
        }
        long[] used = new long[2];
        read(used);
        System.out.printf("thread %s %d %d%n", Thread.currentThread().getName(), used[0], used[1]);
    }

    public static void main(String[] arguments) throws InterruptedException {
        all();
        Thread one = new Thread(Costs::all, "second");
        one.start();
        one.join();
        Thread last = new Thread(() -> {
            all();
            System.exit(0);
        }, "third");
        last.start();
        last.join();
    }
}
