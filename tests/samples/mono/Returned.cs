// What methods return is changed by rules, and calls are left out; tests/system/policy/changes.py knows
// what is said.
using System;
using System.Runtime.CompilerServices;
using System.Threading;

public enum Mood { Bad, Fair, Good }
public struct Wide { public long A, B, C; }

public class Shop
{
    public int Price(int kind, string name) { return kind * 10 + name.Length; }
    public static double Tax(double sum, float rate) { return sum * rate; }
    public static float Rate(float x) { return x / 4; }
    public static T Same<T>(T value) { return value; }
    public virtual bool Open(ref int left) { left--; return left > 0; }
    public static Mood Ask(Mood mood) { return mood; }
    public static void Ring(int times) { rung += times; }
    public static byte Low(byte value) { return value; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static sbyte Cold(sbyte value) { return value; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static short Short(short value) { return value; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static sbyte Left(sbyte value) { return value; }
    public static Wide Broad(int a) { return new Wide { A = a, B = 2, C = 3 }; }
    public static long Deep(int n)
    {
        if (n == 0) { throw new InvalidOperationException("deep"); }
        try { return Deep(n - 1) + 1; } finally { Interlocked.Increment(ref left); }
    }
    public static int rung, left;
}

public class Small : Shop
{
    public override bool Open(ref int left) { return false; }
}

public static class Returned
{
    static long Catch(int n)
    {
        try { return Shop.Deep(n); } catch (InvalidOperationException) { return -1; }
    }

    static void Work()
    {
        for (int i = 0; i < 1000; i++) {
            var garbage = new byte[1000];
            if (Shop.Low((byte)(i & 127)) != 201) { Interlocked.Increment(ref wrong); }
            if (Catch(4) != 77) { Interlocked.Increment(ref wrong); }
            if (i % 100 == 0) { GC.Collect(); }
            GC.KeepAlive(garbage);
        }
    }

    static int wrong;

    public static void Main()
    {
        int left = 2;
        var shop = new Shop();
        Console.WriteLine("{0} {1}", shop.Price(1, "tea"), shop.Price(2, "cocoa"));
        Console.WriteLine("{0} {1}", Shop.Tax(10, 0.5f), Shop.Rate(8));
        Console.WriteLine("{0} {1}", Shop.Same(5), Shop.Same("five"));
        Console.WriteLine("{0} {1} {2}", shop.Open(ref left), new Small().Open(ref left), left);
        Console.WriteLine("{0} {1}", Shop.Ask(Mood.Bad), Shop.Ask(Mood.Good));
        Shop.Ring(3);
        Shop.Ring(4);
        Console.WriteLine("{0} {1}", Shop.rung, Shop.Broad(1).A);
        int cold = Shop.Cold(-1), warm = Shop.Cold(1), low = Shop.Short(-1), high = Shop.Short(1), gone = Shop.Left(1);
        Console.WriteLine("{0} {1} {2} {3} {4}", cold, warm, low, high, gone);
        var threads = new Thread[3];
        for (int i = 0; i < 3; i++) { threads[i] = new Thread(Work); threads[i].Start(); }
        foreach (var thread in threads) { thread.Join(); }
        Console.WriteLine("{0} {1}", wrong, Shop.left);
    }
}
