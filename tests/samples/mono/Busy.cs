// Works in threads until its input ends, and checks each result: exceptions through handlers of every
// kind, null and division traps, collections, generics, iterators, delegates, async and dynamic
// methods, aborted threads, stack walks. Prints "ready" when all of it has been compiled, and at its
// end how many results were wrong.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

public class Failure : Exception
{
    public readonly int Depth;
    public Failure(int depth) { Depth = depth; }
}

public struct Pair { public long A, B; public double C; }

public abstract class Shape { public abstract double Area(int k); }

public class Square : Shape { public override double Area(int k) { return 4.0 * k; } }

public class Box<T>
{
    readonly T held;
    public Box(T x) { held = x; }
    public U Map<U>(Func<T, U> f) { return f(held); }
}

public static class Busy
{
    static int wrong, rounds;
    static volatile bool ends;
    static readonly ThreadLocal<int> cleaned = new ThreadLocal<int>();

    static void Check(bool right, string what)
    {
        if (!right) { Interlocked.Increment(ref wrong); Console.WriteLine("wrong: {0}", what); }
    }

    static int Fib(int n) { return n < 2 ? n : Fib(n - 1) + Fib(n - 2); }

    static int Deep(int n)
    {
        if (n == 0) { throw new Failure(7); }
        try { return Deep(n - 1) + 1; } finally { cleaned.Value++; }
    }

    static bool Matches(Failure f) { return f.Depth == 7; }

    static int Catch(int n)
    {
        cleaned.Value = 0;
        try { return Deep(n); } catch (Failure f) when (Matches(f)) { return cleaned.Value; }
    }

    static int Traps(object o, int d)
    {
        int found = 0;
        try { o.GetHashCode(); } catch (NullReferenceException) { found |= 1; }
        try { found += 100 / d; } catch (DivideByZeroException) { found |= 2; }
        try { found += new int[2][d + 5].GetHashCode(); } catch (IndexOutOfRangeException) { found |= 4; }
        return found;
    }

    class Node { public int Value; public int Get() { return Value; } }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int ReadOf(Node node) { return node.Value; }

    static int NullField(Node node)
    {
        try { return ReadOf(node); } catch (NullReferenceException) { return -1; }
    }

    static IEnumerable<int> Numbers(int n) { for (int i = 0; i < n; i++) { yield return i; } }
    static async Task<int> Later(int n) { await Task.Yield(); return n + 1; }
    static Pair Make(int k, double c) { return new Pair { A = k, B = k * 2L, C = c }; }
    static double Sum(Pair p, float f, long l, byte b) { return p.A + p.B + p.C + f + l + b; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static string Caller() { return new StackTrace().GetFrame(1).GetMethod().Name; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool IsCalledByUs() { return Assembly.GetCallingAssembly() == typeof(Busy).Assembly; }

    static int Switch(int k)
    {
        switch (k) {
        case 0: return 5; case 1: return 3; case 2: return 9; case 3: return 1;
        case 4: return 8; case 5: return 2; default: return 0;
        }
    }

    static int Dynamic(int n)
    {
        var made = new DynamicMethod("made", typeof(int), new[] { typeof(int) }, typeof(Busy).Module);
        var il = made.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Call, typeof(Busy).GetMethod("Fib", BindingFlags.NonPublic | BindingFlags.Static));
        il.Emit(OpCodes.Ret);
        return ((Func<int, int>)made.CreateDelegate(typeof(Func<int, int>)))(n);
    }

    static void Round(int seed)
    {
        Check(Fib(10) == 55, "Fib");
        Check(Catch(6) == 6, "Catch");
        Check(Traps(null, 0) == 7, "Traps");
        Check(NullField(null) == -1 && NullField(new Node { Value = 4 }) == 4, "NullField");
        Check(Numbers(9).Where(x => x % 2 == 0).Sum() == 20, "Numbers");
        Check(Sum(Make(seed, 0.5), 0.25f, 3, 4) == seed * 3 + 7.75, "Sum");
        Check(Caller() == "Round", "Caller");
        Check(IsCalledByUs(), "IsCalledByUs");
        Check(Switch(seed % 7) == new[] { 5, 3, 9, 1, 8, 2, 0 }[seed % 7], "Switch");
        Check(new Box<int>(seed).Map(x => x + 1) == seed + 1, "Box");
        Check(new Box<string>("a").Map(x => x + "b") == "ab", "Box of text");
        Shape shape = new Square();
        Check(shape.Area(seed) == 4.0 * seed, "Area");
        Check(Later(seed).Result == seed + 1, "Later");
        if (seed % 16 == 0) { Check(Dynamic(5) == 5, "Dynamic"); GC.Collect(0); }
    }

    static void Work(object seed)
    {
        for (int i = (int)seed; !ends || i < 8; i++) { Round(i % 1000); Interlocked.Increment(ref rounds); }
    }

    static void Aborted(object state)
    {
        try {
            ((ManualResetEvent)state).Set();
            for (;;) { Fib(5); }
        } catch (ThreadAbortException) { }
    }

    static void Abort()
    {
        var started = new ManualResetEvent(false);
        var thread = new Thread(Aborted);
        thread.Start(started);
        started.WaitOne();
        thread.Abort();
        Check(thread.Join(60000), "Abort");
    }

    public static int Main()
    {
        for (int i = 0; i < 20; i++) { Round(i); }
        Abort();
        var threads = new List<Thread>();
        for (int i = 0; i < 3; i++) { threads.Add(new Thread(Work)); threads[i].Start(i); }
        Console.WriteLine("ready");
        for (int c = Console.Read(); c >= 0; c = Console.Read()) {
            if (c == 'a') { Abort(); }
            if (c == '?') { Console.WriteLine(rounds); }
        }
        ends = true;
        foreach (var thread in threads) { thread.Join(); }
        Console.WriteLine("{0} wrong", wrong);
        return wrong == 0 ? 6 : 1;
    }
}
