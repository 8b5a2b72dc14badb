import io.sojourn.Sojourn;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** idle SECONDS [watched]: CPU of a program that rests; calls COUNT: CPU time of a call with values. */
public class StallBench {
    static final ThreadMXBean CPU = ManagementFactory.getThreadMXBean();

    static int valued(int value) {
        return value + 1;
    }

    static int sum(int count) {
        int sum = 0;
        for (int i = 0; i < count; i++) {
            sum += valued(i);
        }
        return sum;
    }

    public static void main(String[] arguments) throws Exception {
        int number = Integer.parseInt(arguments[1]);
        if (arguments[0].equals("calls")) {
            sum(number / 4);
            long begin = CPU.getCurrentThreadCpuTime();
            int sum = sum(number);
            System.out.println((CPU.getCurrentThreadCpuTime() - begin) / number + (sum == 42 ? " " : ""));
            return;
        }
        ExecutorService events = Executors.newSingleThreadExecutor();
        if (arguments.length > 2) {
            Sojourn.watch("events", events, 100);
        }
        Thread.sleep(3000);
        long begin = ProcessHandle.current().info().totalCpuDuration().get().toNanos();
        Thread.sleep(number * 1000L);
        System.out.println(ProcessHandle.current().info().totalCpuDuration().get().toNanos() - begin);
        events.shutdownNow();
        System.exit(0);
    }
}
