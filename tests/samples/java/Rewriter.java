import java.io.IOException;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.lang.instrument.UnmodifiableClassException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.ProtectionDomain;
import java.util.concurrent.atomic.AtomicLong;
import jdk.internal.org.objectweb.asm.ClassReader;
import jdk.internal.org.objectweb.asm.ClassVisitor;
import jdk.internal.org.objectweb.asm.ClassWriter;
import jdk.internal.org.objectweb.asm.MethodVisitor;
import jdk.internal.org.objectweb.asm.Opcodes;

/** Another agent that rewrites classes: it counts the calls of Attached.early, and writes the number to a file when
 * the program ends. */
public class Rewriter implements ClassFileTransformer {
    static final AtomicLong CALLS = new AtomicLong();

    public static void called() {
        CALLS.incrementAndGet();
    }

    @Override
    public byte[] transform(ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] bytes) {
        if (!"Attached".equals(name)) {
            return null;
        }
        ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
        new ClassReader(bytes).accept(new ClassVisitor(Opcodes.ASM8, writer) {
            @Override
            public MethodVisitor visitMethod(int access, String method, String type, String signature, String[] thrown) {
                MethodVisitor visitor = super.visitMethod(access, method, type, signature, thrown);
                return !method.equals("early") ? visitor : new MethodVisitor(Opcodes.ASM8, visitor) {
                    @Override
                    public void visitCode() {
                        super.visitCode();
                        visitMethodInsn(Opcodes.INVOKESTATIC, "Rewriter", "called", "()V", false);
                    }
                };
            }
        }, 0);
        return writer.toByteArray();
    }

    static void begin(String file, Instrumentation instrumentation) {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                Files.writeString(Path.of(file), Long.toString(CALLS.get()));
            } catch (IOException exception) {
                throw new IllegalStateException(exception);
            }
        }));
        instrumentation.addTransformer(new Rewriter(), true);
    }

    public static void premain(String file, Instrumentation instrumentation) {
        begin(file, instrumentation);
    }

    public static void agentmain(String file, Instrumentation instrumentation) throws UnmodifiableClassException {
        begin(file, instrumentation);
        for (Class<?> loaded : instrumentation.getAllLoadedClasses()) {
            if (loaded.getName().equals("Attached")) {
                instrumentation.retransformClasses(loaded);
            }
        }
    }
}
