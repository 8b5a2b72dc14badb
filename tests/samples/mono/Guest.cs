// Called by native code of embedder.c, which it calls in turn, and ended by an exception through it.
using System;
using System.Runtime.CompilerServices;

static class Guest
{
    [MethodImpl(MethodImplOptions.InternalCall)] static extern int Answer(int left);

    static void Back(int left) { Answer(left - 1); }

    static int Fails(int left) { if (left == 0) { throw new InvalidOperationException("at the end"); } return Fails(left - 1); }

    static int Main(string[] words)
    {
        try { Fails(4); } catch (InvalidOperationException e) { Console.WriteLine(e.Message); }
        Console.WriteLine(words.Length);
        return 9;
    }
}
