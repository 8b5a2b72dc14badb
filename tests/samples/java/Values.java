package java.sojourn;

/** Stands for the agent's class of the same name: takes values and changes nothing. */
public class Values {
    private static volatile long taken;

    public static void number(long value, int what, int function) {
        taken += value;
    }

    public static void object(Object value, int what, int function) {
        taken += value != null ? 1 : 0;
    }

    public static void thrown(Object exception, int what, int function) {
        ((Throwable) exception).getClass();
    }

    public static void judge(int what, int function) {
        taken++;
    }

    public static long set(long value, int what, int function) {
        return 0;
    }

    public static int decide(int what, int function) {
        return 0;
    }

    public static long result(int what, int function) {
        return 0;
    }

    public static void line(int what, int function) {
        taken++;
    }

    public static void cost(int what, int function) {
        taken++;
    }
}
