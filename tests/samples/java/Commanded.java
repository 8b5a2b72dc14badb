import io.sojourn.Sojourn;

/** Talks to its tracer by sojourn.jar. What it did of its own it prints. */
public class Commanded {
    static int step(int value) {
        return (value + 1) * 3;
    }

    static int work(int rounds) {
        int sum = 0;
        for (int i = 0; i < rounds; i++) {
            sum += step(i);
        }
        return sum;
    }

    static void frame(int milliseconds) throws InterruptedException {
        Sojourn.frameTick();
        Thread.sleep(milliseconds);
        work(10);
    }

    static void frames() throws InterruptedException {
        for (int i = 0; i < 10; i++) {
            frame(i == 4 || i == 7 ? 60 : 2);
        }
        Sojourn.frameTick();
    }

    public static void main(String[] arguments) throws InterruptedException {
        String how = arguments.length > 0 ? arguments[0] : "";
        Sojourn.markBegin("w\u00e4rm up \ud83d\ude00");
        int sum = work(1000);
        Sojourn.markEnd("w\u00e4rm up \ud83d\ude00");
        Sojourn.markBegin("\u20ac".repeat(30));
        Sojourn.markBegin(null);
        Sojourn.stop();
        sum += work(500);
        Sojourn.start();
        sum += work(250);
        if (how.equals("frames")) {
            frames();
        } else if (how.equals("dump")) {
            Sojourn.dumpFlight();
            work(20);
        }
        System.out.println(sum);
    }
}
