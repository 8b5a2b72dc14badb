/** Some lines of it run, in loops, branches, handlers, constructors and lambdas; each says whether it has to. */
public class Lines {
    private final int value; // no code

    Lines(int value) {
        this(value, 1); // runs
    }

    Lines(int value, int more) {
        super(); // runs
        this.value = value + more; // runs
    }

    static int branch(int way) {
        if (way > 0) { // runs
            return way; // runs
        } else if (way < -100) { // runs
            return 0; // does not
        }
        switch (way) { // runs
        case -1:
            return 7; // runs
        default:
            return 8; // does not
        }
    }

    static int handler(int times) {
        int sum = 0; // runs
        for (int i = 0; i < times; i++) { // runs
            try {
                sum += 10 / (i - 1); // runs
            } catch (ArithmeticException exception) {
                sum += 100; // runs
            } catch (IllegalStateException never) {
                sum += 1000; // does not
            }
        }
        return sum; // runs
    }

    static void never() {
        System.out.println("never"); // does not
    }

    public static void main(String[] arguments) {
        java.util.function.IntSupplier early = () -> 5; // runs
        java.util.function.IntSupplier late = () -> // runs
                6; // does not
        System.out.println(branch(1) + branch(-1) + handler(3) // runs
                + new Lines(3).value + early.getAsInt()); // runs
        if (late == null) { // runs
            never(); // does not
        }
    }
}
