/** Loaded by several loaders. */
public class Plugin {
    public static int run(int value) {
        return value + 1;
    }
}
