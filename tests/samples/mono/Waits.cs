// For each line of input loads the assembly that it names and runs what is in it, or the method that is named
// behind a '!'; the answer is the result.
using System;
using System.Reflection;

static class Waits
{
    static int Main()
    {
        Console.WriteLine("ready");
        for (string line = Console.ReadLine(); line != null; line = Console.ReadLine()) {
            string[] parts = line.Split('!');
            var run = Assembly.LoadFrom(parts[0]).GetType("Victim").GetMethod(parts.Length > 1 ? parts[1] : "Run");
            Console.WriteLine(run.Invoke(null, new object[] { 7 }));
        }
        return 6;
    }
}
