package java.sojourn;

/** The agent's class, which it defines in the boot loader; here for the compiler, not in the jar. */
public final class Commands {
    private Commands() {
    }

    public static native void mark(String name, boolean isEnd);

    public static native void request(int number);

    public static native int thread();

    public static native void posted();

    public static native void stalled(String name, long ageNanos, String report);
}
