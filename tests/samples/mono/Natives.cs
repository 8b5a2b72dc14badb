// Exceptions that pass native frames: out of a callback of native code (libc's qsort), which is called again
// while it is left. Prints what it counted of itself.
using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

static class Natives
{
    delegate int Compare(IntPtr left, IntPtr right);
    [DllImport("libc")] static extern void qsort(int[] items, UIntPtr count, UIntPtr size, Compare compare);

    static int compares, sorts, caught, thrown;

    static int Ordered(IntPtr left, IntPtr right)
    {
        compares++;
        return Marshal.ReadInt32(left).CompareTo(Marshal.ReadInt32(right));
    }

    static int Failing(IntPtr left, IntPtr right)
    {
        if (Marshal.ReadInt32(left) % 7 == 3) { Throw(); }
        return Ordered(left, right);
    }

    static int Nested(IntPtr left, IntPtr right)
    {
        if (Marshal.ReadInt32(left) == 5) { Guarded(Failing, 20); }
        return Ordered(left, right);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Throw() { thrown++; throw new InvalidOperationException(); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Sort(Compare compare, int count)
    {
        sorts++;
        var items = new int[count];
        for (int i = 0; i < count; i++) { items[i] = i * 31 % count; }
        qsort(items, (UIntPtr)count, (UIntPtr)4, compare);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Guarded(Compare compare, int count)
    {
        try { Sort(compare, count); } catch (InvalidOperationException) { Caught(); }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Caught() { caught++; }

    static int Main()
    {
        for (int i = 0; i < 50; i++) {
            Guarded(Ordered, 40 + i);
            Guarded(Failing, 40 + i);
            Guarded(Nested, 40 + i);
            if (i % 10 == 0) { GC.Collect(); }
        }
        Console.WriteLine("COUNT Natives:Ordered(intptr,intptr) {0}", compares);
        Console.WriteLine("COUNT Natives:Sort(Natives/Compare,int) {0}", sorts);
        Console.WriteLine("COUNT Natives:Caught() {0}", caught);
        Console.WriteLine("COUNT Natives:Throw() {0}", thrown);
        return 8;
    }
}
