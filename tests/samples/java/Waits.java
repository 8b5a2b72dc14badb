import java.io.IOException;

/** Loads a class only when it is asked to go on. */
public class Waits {
    static class Late {
        static int answer() {
            return 42;
        }
    }

    public static void main(String[] arguments) throws IOException {
        System.out.println("ready");
        System.in.read();
        System.out.println("late " + Late.answer());
    }
}
