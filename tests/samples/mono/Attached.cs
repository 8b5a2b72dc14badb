// Obeys lines of input, so that a tracer can come and go in between: each line names
// a piece of work and how often, and the answer tells what was done.
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading;

public class Lost : Exception { }
public enum Mood { Bad, Fair, Good }

public static class Work
{
    public static int Leaf(int n) { return n * 3 + 1; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Early(int n) { return n <= 0 ? 0 : 1 + Early(n - 1); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Late(int n) { return n <= 0 ? 0 : 1 + Late(n - 1); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Throws(int n)
    {
        if (n <= 0) { throw new Lost(); }
        try { return Throws(n - 1); } finally { Clean(); }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static string Name(string start, double factor, Mood mood) { return start + (int)(factor * (int)mood); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Clean() { cleaned++; }

    public static int cleaned;
}

public static class Attached
{
    static int Do(string what, int n)
    {
        switch (what) {
        case "early": return Work.Early(n);
        case "late": return Work.Late(n);
        case "throw":
            Work.cleaned = 0;
            try { Work.Throws(n); } catch (Lost) { }
            return Work.cleaned;
        case "name": return int.Parse(Work.Name("three", 1.5, Mood.Good).Substring(5));
        case "collect": GC.Collect(); return n;
        default: return -1;
        }
    }

    public static int Main()
    {
        Console.WriteLine("ready");
        for (string line = Console.ReadLine(); line != null; line = Console.ReadLine()) {
            string[] parts = line.Split(' ');
            Console.WriteLine("{0} {1}", parts[0], Do(parts[0], int.Parse(parts[1])));
        }
        return 5;
    }
}
