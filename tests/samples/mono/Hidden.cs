// Loaded from bytes: no file tells its methods.
public static class Hidden
{
    static int Two() { return 2; }
    public static int Answer(int n) { return n + Two(); }
}
