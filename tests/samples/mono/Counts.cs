// Counts its own calls while it is recorded: each method adds one to the count of its name, and the
// program prints them all at its end. Threads, exceptions of every kind, generics, iterators,
// delegates, async methods, dynamic methods, reflection, collections, an assembly without a file.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

public static class Tally
{
    static readonly Dictionary<string, int> counts = new Dictionary<string, int>();

    public static void Add(string name)
    {
        lock (counts) {
            int n;
            counts.TryGetValue(name, out n);
            counts[name] = n + 1;
        }
    }

    public static void Print()
    {
        foreach (var pair in counts.OrderBy(p => p.Key, StringComparer.Ordinal)) {
            Console.WriteLine("COUNT {0} {1}", pair.Key, pair.Value);
        }
    }
}

public class Failure : Exception { }

public abstract class Shape { public abstract double Area(int k); }

public class Square : Shape
{
    public override double Area(int k) { Tally.Add("Square:Area(int)"); return 4 * k; }
}

public class Box<T>
{
    T held;
    public Box(T x) { Tally.Add("Box`1:.ctor(T)"); held = x; }
    public T Get() { Tally.Add("Box`1:Get()"); return held; }
    public U Map<U>(Func<T, U> f) { Tally.Add("Box`1:Map(System.Func`2<T, U>)"); return f(held); }
    public class Inner { public void Touch(T[] x) { Tally.Add("Box`1/Inner:Touch(T[])"); } }
}

public class Counts
{
    static int Fib(int n) { Tally.Add("Counts:Fib(int)"); return n < 2 ? n : Fib(n - 1) + Fib(n - 2); }

    static void Throw(int depth)
    {
        Tally.Add("Counts:Throw(int)");
        if (depth == 0) { throw new Failure(); }
        Throw(depth - 1);
    }

    static void Cleanup() { Tally.Add("Counts:Cleanup()"); }
    static bool Matches() { Tally.Add("Counts:Matches()"); return true; }

    static int Catch()
    {
        Tally.Add("Counts:Catch()");
        try {
            try { Throw(5); } finally { Cleanup(); }
        } catch (Failure) when (Matches()) { return 7; }
        return 0;
    }

    static int Trap(object o, int d)
    {
        Tally.Add("Counts:Trap(object,int)");
        try { o.GetHashCode(); } catch (NullReferenceException) { }
        try { return 1 / d; } catch (DivideByZeroException) { return 2; }
    }

    static IEnumerable<int> Numbers(int n) { for (int i = 0; i < n; i++) { yield return Step(i); } }
    static int Step(int i) { Tally.Add("Counts:Step(int)"); return i; }

    static async Task<int> Later(int n) { await Task.Delay(1); return After(n); }
    static int After(int n) { Tally.Add("Counts:After(int)"); return n + 1; }

    static void Aborted()
    {
        Tally.Add("Counts:Aborted()");
        try { Wait(); } catch (ThreadAbortException) { Cleanup(); }
    }

    static void Wait()
    {
        Tally.Add("Counts:Wait()");
        started.Set();
        Thread.Sleep(60000);
    }

    static readonly ManualResetEvent started = new ManualResetEvent(false);

    static void Work()
    {
        Tally.Add("Counts:Work()");
        for (int i = 0; i < 40; i++) {
            if (Catch() != 7 || Fib(8) != 21) { Console.WriteLine("wrong"); }
            if (i % 10 == 0) { GC.Collect(); }
        }
    }

    static int MakeAndCall()
    {
        var made = new DynamicMethod("made", typeof(int), new[] { typeof(int) }, typeof(Counts).Module);
        var il = made.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Call, typeof(Counts).GetMethod("Fib", BindingFlags.NonPublic | BindingFlags.Static));
        il.Emit(OpCodes.Ret);
        return ((Func<int, int>)made.CreateDelegate(typeof(Func<int, int>)))(3);
    }

    static int FromBytes(string path)
    {
        var assembly = Assembly.Load(File.ReadAllBytes(path));
        return (int)assembly.GetType("Hidden").GetMethod("Answer").Invoke(null, new object[] { 40 });
    }

    public static int Main(string[] arguments)
    {
        Tally.Add("Counts:Main(string[])");
        var threads = new Thread[4];
        for (int i = 0; i < threads.Length; i++) { threads[i] = new Thread(Work); threads[i].Start(); }
        foreach (var thread in threads) { thread.Join(); }
        var aborted = new Thread(Aborted);
        aborted.Start();
        started.WaitOne();
        aborted.Abort();
        aborted.Join();
        Trap(null, 0);
        Shape shape = new Square();
        for (int i = 0; i < 3; i++) { shape.Area(i); }
        new Box<int>(5).Map(x => x * 2);
        new Box<string>("text").Get();
        new Box<double>(1.5).Map(x => "a");
        new Box<string>.Inner().Touch(null);
        int sum = Numbers(20).Where(x => x % 2 == 0).Sum() + Later(1).Result + MakeAndCall();
        sum += (int)typeof(Counts).GetMethod("Fib", BindingFlags.NonPublic | BindingFlags.Static)
                   .Invoke(null, new object[] { 4 });
        if (arguments.Length > 0) { sum += FromBytes(arguments[0]); }
        Console.WriteLine("sum {0}", sum);
        Tally.Print();
        return 3;
    }
}
