// For each line of input loads the assembly that it names and runs what is in it; the answer is the result.
using System;
using System.Reflection;

static class Waits
{
    static int Main()
    {
        Console.WriteLine("ready");
        for (string line = Console.ReadLine(); line != null; line = Console.ReadLine()) {
            var run = Assembly.LoadFrom(line).GetType("Victim").GetMethod("Run");
            Console.WriteLine(run.Invoke(null, new object[] { 7 }));
        }
        return 6;
    }
}
