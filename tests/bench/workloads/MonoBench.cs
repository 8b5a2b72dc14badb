// Calls that do next to nothing; prints CPU picoseconds of its thread per call, the least of many short
// slices. For each further line of input it measures again. tests/bench/mono_bench.py
using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

public struct TimeSpec { public long Seconds, Nanoseconds; }

public static class Bench
{
    [DllImport("libc")] static extern int clock_gettime(int clock, out TimeSpec time);

    [MethodImpl(MethodImplOptions.NoInlining)] public static int Numbers(int a, int b) { return a ^ b; }
    [MethodImpl(MethodImplOptions.NoInlining)] public static int Texts(string a, string b) { return 1; }
    static int Small(int a) { return a + 1; } // is inlined

    static long Now()
    {
        TimeSpec time;
        clock_gettime(3, out time);
        return time.Seconds * 1000000000 + time.Nanoseconds;
    }

    static int Slice(string what, int count)
    {
        int sum = 0;
        switch (what) {
        case "numbers": for (int i = 0; i < count; i++) { sum += Numbers(i, sum); } break;
        case "texts": for (int i = 0; i < count; i++) { sum += Texts("one", "another"); } break;
        default: for (int i = 0; i < count; i++) { sum += Small(sum); } break;
        }
        return sum;
    }

    static long Measure(string what, int count)
    {
        long least = long.MaxValue;
        for (int slice = 0; slice < 60; slice++) {
            long start = Now();
            Slice(what, count);
            least = Math.Min(least, (Now() - start) * 1000 / count);
        }
        return least;
    }

    public static void Main(string[] words)
    {
        int count = int.Parse(words[1]);
        Measure(words[0], count / 10);
        do {
            Console.WriteLine(Measure(words[0], count));
        } while (Console.ReadLine() != null);
    }
}
