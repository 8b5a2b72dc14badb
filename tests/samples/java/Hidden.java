import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntUnaryOperator;

/** As the JDK names the class of a lambda, since version 21. */
class Hidden$$Lambda {
    static int run(int value) {
        return value + 2;
    }
}

/** Defines a hidden class for each "define N" or "lambda N" of its input, and calls all that it has for "call N". */
public class Hidden {
    static final List<MethodHandle> RUNS = new ArrayList<>();
    static final IntUnaryOperator LAMBDA = value -> value + 2;
    static int wrong;

    static void define(String fileName) throws IOException, ReflectiveOperationException {
        try (InputStream file = Hidden.class.getResourceAsStream(fileName)) {
            MethodHandles.Lookup made = MethodHandles.lookup().defineHiddenClass(
                file.readAllBytes(), true, MethodHandles.Lookup.ClassOption.NESTMATE);
            RUNS.add(made.findStatic(made.lookupClass(), "run", MethodType.methodType(int.class, int.class)));
        }
    }

    static void call(int value) throws Throwable {
        if (LAMBDA.applyAsInt(value) != value + 2) {
            wrong++;
        }
        for (MethodHandle run : RUNS) {
            if ((int) run.invokeExact(value) != value + 2) {
                wrong++;
            }
        }
    }

    public static void main(String[] arguments) throws Throwable {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            for (int i = 0; i < Integer.parseInt(words[1]); i++) {
                if (words[0].equals("define")) {
                    define("HiddenPart.class");
                } else if (words[0].equals("lambda")) {
                    define("Hidden$$Lambda.class");
                } else {
                    call(i);
                }
            }
            System.out.println(line);
        }
        System.out.println("wrong=" + wrong);
        System.exit(5);
    }
}
