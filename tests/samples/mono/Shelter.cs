// Loads an assembly, has its file replaced, and only then runs what is in it: LIBRARY REPLACEMENT|-
using System;
using System.IO;
using System.Linq;
using System.Reflection;

static class Shelter
{
    static int Main(string[] words)
    {
        var assembly = Assembly.LoadFrom(words[0]);
        var run = assembly.GetTypes().SelectMany(type => type.GetMethods()).First(method => method.Name == "Run");
        if (words[1] == "-") { File.Delete(words[0]); }
        else { File.Copy(words[1], words[0] + ".new"); File.Delete(words[0]); File.Move(words[0] + ".new", words[0]); }
        Console.WriteLine(run.Invoke(null, new object[] { 7 }));
        return 4;
    }
}
