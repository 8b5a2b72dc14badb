import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;

/** Code of every shape that a rewriter of bytecode has to move. */
public class Shapes {
    record Point(int x, long y, double z) { }

    sealed interface Figure permits Circle, Square { }

    record Circle(double radius) implements Figure { }

    record Square(double side) implements Figure { }

    final Object kept;

    Shapes(boolean throwing) {
        super();
        kept = throwing ? new ArrayList<Integer>() : new HashMap<String, String>();
        if (throwing) {
            throw new IllegalStateException("constructor");
        }
    }

    Shapes() {
        this(Math.abs(-1) == 2 ? new ArrayList<Integer>().isEmpty() : false);
    }

    static int table(int number) {
        switch (number) {
        case 1: return 5;
        case 2: return 7;
        case 3:
        case 4: return 9;
        default: return number > 1000 ? 3 : 2;
        }
    }

    static String texts(String text) {
        switch (text) {
        case "a": return "x";
        case "zzzz": return "y";
        default: return text + text;
        }
    }

    static long passes(int number) {
        try {
            if (number == 0) {
                throw new RuntimeException("zero");
            }
            return 7L / (number - 3);
        } catch (ArithmeticException caught) {
            return 2;
        } finally {
            number++;
        }
    }

    static int startsWithALoop(int number) {
        int sum = 0;
        while (true) {
            if (number-- <= 0) {
                return sum;
            }
            sum += number;
        }
    }

    static synchronized int locks(Object object) {
        synchronized (object) {
            return object.hashCode() & 0;
        }
    }

    static double area(Figure figure) {
        return figure instanceof Circle circle ? 3 * circle.radius() * circle.radius()
             : figure instanceof Square square ? square.side() * square.side() : 0;
    }

    static int thrower(int depth) {
        if (depth == 0) {
            throw new UnsupportedOperationException("deep");
        }
        return thrower(depth - 1) + 1;
    }

    static class Outer {
        private int value = 3;

        class Inner {
            int peek() {
                return value++;
            }
        }
    }

    public static void main(String[] arguments) {
        long sum = 0;
        for (int i = 0; i < 10; i++) {
            sum += table(i) + startsWithALoop(i);
            try {
                sum += passes(i);
            } catch (RuntimeException caught) {
                sum += 100;
            }
        }
        System.out.println(sum + texts("a") + texts("q") + locks("q") + new Point(1, 2, 3));
        new Shapes();
        try {
            new Shapes(true);
        } catch (IllegalStateException caught) {
            System.out.println(caught.getMessage());
        }
        try {
            thrower(40);
        } catch (UnsupportedOperationException caught) {
            System.out.println(caught.getMessage());
        }
        List<Integer> numbers = new ArrayList<>(List.of(3, 1, 2));
        numbers.sort(Comparator.reverseOrder());
        Runnable lambda = () -> System.out.println("lambda " + numbers);
        lambda.run();
        System.out.println(area(new Circle(2)) + area(new Square(3)) + new Outer().new Inner().peek());
    }
}
