import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;

/** A loop that stands in a method all the time and calls another of its class now and then, and one of another class
 * more often. Says for each line of its input how often the loop called; "again" has it enter its method anew. */
public class Standing {
    static final int WORK = 3000;
    static volatile boolean ends;
    static volatile int turn;
    static volatile long called;

    /** Its probes cost more than they may, and little once they record nothing. */
    static long rare(long seed) {
        return seed ^ seed >>> 7;
    }

    /** Small enough for its caller to hold it. */
    static class Often {
        static long hot(long seed) {
            return seed * 6364136223846793005L + 1;
        }
    }

    static void loop() {
        long seed = 1;
        int begun = turn;
        while (!ends && turn == begun) {
            for (int i = 0; i < WORK; i++) {
                seed = seed * 6364136223846793005L + i;
            }
            for (int i = 0; i < WORK / 150; i++) {
                seed = Often.hot(seed);
            }
            seed = rare(seed);
            called++;
        }
    }

    static void loops() {
        while (!ends) {
            loop();
        }
    }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        Thread thread = new Thread(Standing::loops, "loop");
        thread.start();
        System.out.println("ready");
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            turn += line.equals("again") ? 1 : 0;
            System.out.println(called);
        }
        ends = true;
        thread.join();
    }
}
