// Arguments and results whose recorded values are known.
using System;
using System.Runtime.CompilerServices;

public enum Colour : byte { Red = 1, Green = 250 }

public class Npc
{
    int health = 100;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public int Hit(int damage, string by) { health -= damage; return health; }
    public static string Join(string a, string b) { return a + b; }
    public static double Scale(double x, float y) { return x * y; }
    public static long Wide(long x, bool sign, short s, Colour c) { return sign ? x + s : (long)c; }
    public static void Swap(ref int a) { a++; }
    public static int Fail(int x) { throw new InvalidOperationException("no"); }
}

public static class Values
{
    public static int Main()
    {
        var npc = new Npc();
        npc.Hit(30, "J\u00f6rg \"\u20ac\"");
        npc.Hit(-5, null);
        Npc.Join("one", new string('x', 100));
        Npc.Scale(1.5, 2.0f);
        Npc.Wide(1L << 40, true, -3, Colour.Green);
        int a = 41;
        Npc.Swap(ref a);
        try { Npc.Fail(7); } catch (InvalidOperationException) { }
        Console.WriteLine(a);
        return 0;
    }
}
