/** What Hidden defines hidden classes of. */
class HiddenPart {
    static int part(int value) {
        return value + 1;
    }

    /** Calls by the name of its class, which in a hidden class is that of no other. */
    static int run(int value) {
        return 2 * part(value) - value;
    }
}
