import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/** A loop that stands in a method all the time and calls a method of a hidden class and one of its own class now and
 * then, and one of another class more often. Says for each line of its input how often the loop called. */
public class Standing {
    static final int WORK = 1000;
    static final MethodHandle PART = part();
    static volatile boolean ends;
    static volatile long called;

    static MethodHandle part() {
        try (InputStream file = Standing.class.getResourceAsStream("StandingPart.class")) {
            MethodHandles.Lookup made = MethodHandles.lookup().defineHiddenClass(file.readAllBytes(), true);
            return made.findStatic(made.lookupClass(), "part", MethodType.methodType(long.class, long.class));
        } catch (IOException | ReflectiveOperationException problem) {
            throw new IllegalStateException(problem);
        }
    }

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
        while (!ends) {
            for (int i = 0; i < WORK; i++) {
                seed = seed * 6364136223846793005L + i;
            }
            for (int i = 0; i < WORK / 50; i++) {
                seed = Often.hot(seed);
            }
            seed = rare(seed);
            try {
                seed = (long) PART.invokeExact(seed);
            } catch (Throwable problem) {
                throw new IllegalStateException(problem);
            }
            called++;
        }
    }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        Thread thread = new Thread(Standing::loop, "loop");
        thread.start();
        System.out.println("ready");
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(called);
        }
        ends = true;
        thread.join();
    }
}
