// What is loaded and unloaded; compiled twice, with another constant, so that only the module id tells which.
public static class Plugin
{
    public static int Answer(int n) { return Twice(n) + Base.Number; }
    static int Twice(int n) { return n * 2; }
}

public static class Base
{
#if SECOND
    public static int Number { get { return Second(); } }
    static int Second() { return 2000; }
#else
    public static int Number { get { return 1000; } }
#endif
}
