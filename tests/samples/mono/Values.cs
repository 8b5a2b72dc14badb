// Arguments and results whose recorded values are known.
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;

public enum Colour : byte { Red = 1, Green = 250 }

public struct Spot { public int X; public double Y; public Colour C; public string Name; public static int Count; }

public class Npc
{
    int health = 100;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public int Hit(int damage, string by) { health -= damage; return health; }
    public static string Join(string a, string b) { return a + b; }
    public static double Scale(double x, float y) { return x * y; }
    public static long Wide(long x, bool sign, short s, Colour c) { return sign ? x + s : (long)c; }
    public static void Swap(ref int a) { a++; }
    public static void Take(out int a) { a = 5; }
    public static Colour Paint(Colour c, Spot s, int[] k) { return k.Length > s.X ? c : Colour.Red; }
    public static Npc Meet(Npc who, List<int> whom, object what) { return whom == null ? null : who; }
    public static char Plain(sbyte a, bool b, ulong c) { return b ? 'y' : 'n'; }
    public static int Fail(int x) { throw new InvalidOperationException("no"); }
}

public static class Values
{
    static void Deep() { throw new ArgumentException("no"); }

    static void Guard()
    {
        try { Deep(); } finally {
            try { Npc.Fail(1); } catch (InvalidOperationException) { }
        }
    }

    public static int Main()
    {
        var npc = new Npc();
        npc.Hit(30, "J\u00f6rg \"\u20ac\"");
        npc.Hit(-5, null);
        Npc.Join("one", new string('x', 100));
        Npc.Scale(1.5, 2.0f);
        Npc.Wide(1L << 40, true, -3, Colour.Green);
        Npc.Paint(Colour.Green, new Spot { X = 2, Y = -2.25, C = Colour.Red, Name = "a" }, new int[3]);
        Npc.Paint((Colour)7, new Spot { Y = 1e300 }, new int[0]);
        Npc.Meet(npc, null, new double[2, 3]);
        Npc.Plain(-5, true, ulong.MaxValue);
        int a = 41;
        Npc.Swap(ref a);
        int b;
        Npc.Take(out b);
        try { Npc.Fail(7); } catch (InvalidOperationException) { }
        try { Guard(); } catch (ArgumentException) { }
        Console.WriteLine(a);
        return 0;
    }
}
