using System;
using System.Threading;

// The first line of input makes the first thread's stack overflow, each other line those of threads with small stacks,
// by methods with frames of several sizes, which are compiled then. Prints how many overflows were caught and how many
// finally clauses ran.
public static class Overflows {
    static int caught, ended;

    unsafe struct Large { public fixed byte bytes[3000]; }

    static int Plain(int n) { return Plain(n + 1) + 1; }

    static unsafe int Wide(int n) {
        Large large;
        large.bytes[0] = (byte)n;
        return Wide(n + 1) + large.bytes[0];
    }

    static unsafe int Middle(int n) {
        byte* bytes = stackalloc byte[200];
        bytes[0] = (byte)n;
        return Middle(n + 1) + bytes[0];
    }

    // A handler above finds these in registers that methods below have saved.
    static double Many(int a, int b, int c, int d, double e, double f, string g) {
        return Many(b, c, d, a, f, e, g) * e + a + b + c + d;
    }

    static int Finally(int n) {
        try { return Finally(n + 1) + 1; } finally { if (n == 0) ended++; }
    }

    static int Two(int n) { return Other(n) + 1; }

    static int Other(int n) { return Two(n) + 1; }

    static int Deeper(int depth, Func<int> overflow) {
        return depth == 0 ? overflow() : Deeper(depth - 1, overflow) + 1;
    }

    static void Catch(int depth, Func<int> overflow) {
        int a = depth * 3, b = depth * 5, c = depth * 7;
        try { Deeper(depth, overflow); } catch (StackOverflowException) { caught += a + b + c == depth * 15 ? 1 : 1000; }
    }

    static void All(int depth) {
        Catch(depth, () => Plain(0));
        Catch(depth, () => Wide(0));
        Catch(depth, () => Middle(0));
        Catch(depth, () => (int)Many(1, 2, 3, 4, 5, 6, "7"));
        Catch(depth, () => Finally(0));
        Catch(depth, () => Two(0));
    }

    static void Join(int depth) {
        var thread = new Thread(() => All(depth), 128 << 10);
        thread.Start();
        thread.Join();
    }

    public static int Main() {
        for (int depth = 0; Console.ReadLine() != null; depth++) {
            if (depth == 0) Catch(0, () => Plain(0));
            else Join(depth);
            Console.WriteLine("caught " + caught + " ended " + ended);
        }
        return 3;
    }
}
