package java.sojourn;

/** Stands for the agent's class of the same name: counts, and says so when the program ends. */
public class Probe {
    private static long entered;
    private static long left;
    private static long unwound;

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(() ->
            System.err.println("entered " + entered + " ended " + (left + unwound) + " unwound " + unwound)));
    }

    public static void enter(int function) {
        entered++;
    }

    public static void leave(int function) {
        left++;
    }

    public static void unwind(int function) {
        unwound++;
    }
}
