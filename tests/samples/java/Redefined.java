import java.io.IOException;
import java.io.InputStream;
import java.lang.instrument.ClassDefinition;
import java.lang.instrument.Instrumentation;
import java.lang.instrument.UnmodifiableClassException;

/** An agent that redefines a class of its own program: its method returns another number, and then the first again. */
public class Redefined {
    static Instrumentation instrumentation;

    static class Target {
        static int value() {
            return 1111;
        }
    }

    public static void premain(String unused, Instrumentation given) {
        instrumentation = given;
    }

    /** The bytes of Target, whose number is another one. */
    static byte[] target(int number) throws IOException {
        byte[] bytes;
        try (InputStream stream = Redefined.class.getResourceAsStream("Redefined$Target.class")) {
            bytes = stream.readAllBytes();
        }
        for (int i = 0; i + 2 < bytes.length; i++) {
            if (bytes[i] == 0x11 && bytes[i + 1] == 1111 >> 8 && bytes[i + 2] == (byte) 1111) { // sipush
                bytes[i + 1] = (byte) (number >> 8);
                bytes[i + 2] = (byte) number;
            }
        }
        return bytes;
    }

    static void call(int times) {
        int sum = 0;
        for (int i = 0; i < times; i++) {
            sum += Target.value();
        }
        System.out.println(sum);
    }

    public static void main(String[] arguments)
            throws IOException, ClassNotFoundException, UnmodifiableClassException {
        call(3);
        instrumentation.redefineClasses(new ClassDefinition(Target.class, target(2222)));
        call(5);
        instrumentation.redefineClasses(new ClassDefinition(Target.class, target(1111)));
        call(7);
    }
}
