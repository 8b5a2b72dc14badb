import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Method;

/** One class in many loaders, some of which are forgotten; and a few that descend from each other. */
public class Loaders {
    interface Shape {
        int area();
    }

    abstract static class Base implements Shape {
        int twice() {
            return 2 * area();
        }
    }

    static class Square extends Base {
        final int side;

        Square(int side) {
            this.side = side;
        }

        @Override
        public int area() {
            return side * side;
        }
    }

    static class Lone {
        int alone() {
            return 1;
        }
    }

    /** Defines Plugin itself, whatever its parent has. */
    static class PluginLoader extends ClassLoader {
        final byte[] bytes;

        PluginLoader(byte[] bytes) {
            super(Loaders.class.getClassLoader());
            this.bytes = bytes;
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            return name.equals("Plugin") ? defineClass(name, bytes, 0, bytes.length) : super.loadClass(name, resolve);
        }
    }

    static int run(byte[] bytes, int times) throws ReflectiveOperationException {
        Method method = new PluginLoader(bytes).loadClass("Plugin").getMethod("run", int.class);
        int sum = 0;
        for (int i = 0; i < times; i++) {
            sum += (Integer) method.invoke(null, i);
        }
        return sum;
    }

    public static void main(String[] arguments) throws IOException, ReflectiveOperationException {
        int loaders = Integer.parseInt(arguments[0]);
        byte[] bytes;
        try (InputStream stream = Loaders.class.getResourceAsStream("Plugin.class")) {
            bytes = stream.readAllBytes();
        }
        System.out.println("ready");
        long sum = 0;
        for (int i = 0; i < loaders; i++) {
            sum += run(bytes, 5);
            if (i % 16 == 15) {
                System.gc(); // classes of forgotten loaders go
            }
        }
        sum += new Square(3).twice() + new Lone().alone();
        System.out.println("sum " + sum);
    }
}
