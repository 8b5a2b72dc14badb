/** What Slow defines a hidden class of: its initializer runs until it may end. */
class HiddenSlow {
    static {
        Slow.initialize();
    }

    static int run(int value) {
        return value + 2;
    }
}
