package java.sojourn;

/** The agent defines this class in the boot loader. This copy is for the compiler; the jar does not have it. */
public final class Commands {
    private Commands() {
    }

    public static native void mark(String name, boolean isEnd);

    public static native void request(int number);

    public static native int thread();

    public static native void posted();

    public static native void stalled(String name, long ageNanos, String report);
}
