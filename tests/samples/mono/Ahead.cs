// A library that is compiled ahead of time, and whose calls are left by exceptions.
using System;
using System.Runtime.CompilerServices;

public class Victim
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Fails(int left)
    {
        if (left == 0) { throw new InvalidOperationException("no"); }
        return Fails(left - 1) + 1;
    }

    public static int Run(int depth)
    {
        try { return Fails(depth); } catch (InvalidOperationException) { return 134; }
    }
}
