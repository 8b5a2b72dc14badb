// Forks in the middle, and has objects finalized: counts the calls of its methods, those of the child in the
// child, which tells them by its exit code. Prints them all at its end. tests/system/record/mono_forks.py
using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

public sealed class Finalized
{
    ~Finalized() { Forks.Gone(); }
}

public static class Forks
{
    const int Objects = 500;
    [DllImport("libc")] static extern int fork();
    [DllImport("libc")] static extern void _exit(int code);
    [DllImport("libc")] static extern int waitpid(int pid, out int status, int options);
    static int gone, before, after, child;

    [MethodImpl(MethodImplOptions.NoInlining)] public static void Gone() { Interlocked.Increment(ref gone); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Before() { before++; }
    [MethodImpl(MethodImplOptions.NoInlining)] static void After() { after++; }
    [MethodImpl(MethodImplOptions.NoInlining)] static void InChild() { child++; }
    [MethodImpl(MethodImplOptions.NoInlining)] static void FirstInChild() { child += 100; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Make()
    {
        for (int i = 0; i < Objects; i++) { new Finalized(); }
    }

    static void FinalizeAll()
    {
        var maker = new Thread(Make); // so that no stack that stays leads to one of them
        maker.Start();
        maker.Join();
        while (Volatile.Read(ref gone) < Objects) {
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }
    }

    public static int Main()
    {
        FinalizeAll();
        for (int i = 0; i < 40; i++) { Before(); InChild(); }
        child = 0;
        int process = fork();
        if (process == 0) {
            for (int i = 0; i < 30; i++) { Before(); InChild(); }
            FirstInChild(); // is compiled there
            _exit(child);
        }
        int status;
        if (waitpid(process, out status, 0) != process) { return 1; }
        for (int i = 0; i < 20; i++) { After(); }
        Console.WriteLine("COUNT Finalized:Finalize() " + gone);
        Console.WriteLine("COUNT Forks:Gone() " + gone);
        Console.WriteLine("COUNT Forks:Before() " + (before + 30));
        Console.WriteLine("COUNT Forks:InChild() " + (40 + 30));
        Console.WriteLine("COUNT Forks:FirstInChild() 1");
        Console.WriteLine("COUNT Forks:After() " + after);
        return status >> 8;
    }
}
