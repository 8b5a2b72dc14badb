import jdk.internal.org.objectweb.asm.ClassWriter;
import jdk.internal.org.objectweb.asm.Label;
import jdk.internal.org.objectweb.asm.MethodVisitor;
import jdk.internal.org.objectweb.asm.Opcodes;

/** A class file as compilers wrote them for Java 1.4, with a subroutine; and constructors that throw
 * before the other constructor was called. */
public class Old extends ClassLoader {
    static final int SUBROUTINE = 48;

    static class Parent {
        Parent(int value) {
        }
    }

    static class Early extends Parent {
        Early(int value) {
            super(checked(value));
        }

        static int checked(int value) {
            if (value < 0) {
                throw new IllegalArgumentException("negative");
            }
            return value;
        }
    }

    /** public static int twice(int n), which returns n + 21: twice a subroutine adds ten. */
    static byte[] made() {
        ClassWriter writer = new ClassWriter(0);
        writer.visit(SUBROUTINE, Opcodes.ACC_PUBLIC, "Made", null, "java/lang/Object", null);
        MethodVisitor code = writer.visitMethod(Opcodes.ACC_PUBLIC | Opcodes.ACC_STATIC, "twice", "(I)I", null, null);
        Label subroutine = new Label();
        code.visitCode();
        code.visitVarInsn(Opcodes.ILOAD, 0);
        code.visitInsn(Opcodes.ICONST_1);
        code.visitInsn(Opcodes.IADD);
        code.visitVarInsn(Opcodes.ISTORE, 1);
        code.visitJumpInsn(Opcodes.JSR, subroutine);
        code.visitJumpInsn(Opcodes.JSR, subroutine);
        code.visitVarInsn(Opcodes.ILOAD, 1);
        code.visitInsn(Opcodes.IRETURN);
        code.visitLabel(subroutine);
        code.visitVarInsn(Opcodes.ASTORE, 2);
        code.visitIincInsn(1, 10);
        code.visitVarInsn(Opcodes.RET, 2);
        code.visitMaxs(2, 3);
        code.visitEnd();
        writer.visitEnd();
        return writer.toByteArray();
    }

    static int early(int value) {
        try {
            new Early(value);
            return 0;
        } catch (IllegalArgumentException exception) {
            return 1;
        }
    }

    public static void main(String[] arguments) throws ReflectiveOperationException {
        byte[] bytes = made();
        Class<?> made = new Old().defineClass("Made", bytes, 0, bytes.length);
        int sum = 0;
        for (int i = 0; i < 4; i++) {
            sum += (int) made.getMethod("twice", int.class).invoke(null, i);
        }
        System.out.println(sum + " " + early(1) + early(-1) + early(-2));
    }
}
