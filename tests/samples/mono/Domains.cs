// Loads and unloads: application domains with assemblies from files and from bytes, dynamic methods that
// are freed, types that are emitted. Tells what it has called how often; tests/system/record/mono_domains.py.
using System;
using System.Collections.Generic;
using System.IO;
using System.Reflection;
using System.Reflection.Emit;

public class Worker : MarshalByRefObject
{
    public int Work(string path, bool fromBytes, int times)
    {
        var assembly = fromBytes ? Assembly.Load(File.ReadAllBytes(path)) : Assembly.LoadFrom(path);
        var answer = assembly.GetType("Plugin").GetMethod("Answer");
        int sum = 0;
        for (int i = 0; i < times; i++) { sum += (int)answer.Invoke(null, new object[] { i }); Here(); }
        return sum;
    }

    static void Here() { }
}

public static class Domains
{
    static int InDomain(string path, bool fromBytes, int times)
    {
        var domain = AppDomain.CreateDomain("plugin");
        var worker = (Worker)domain.CreateInstanceAndUnwrap(typeof(Worker).Assembly.FullName, "Worker");
        int sum = worker.Work(path, fromBytes, times);
        AppDomain.Unload(domain);
        return sum;
    }

    static int Dynamic(int number)
    {
        var method = new DynamicMethod("Dynamic" + number % 3, typeof(int), new[] { typeof(int) });
        var code = method.GetILGenerator();
        code.Emit(OpCodes.Ldarg_0);
        code.Emit(OpCodes.Ldc_I4, number);
        code.Emit(OpCodes.Add);
        code.Emit(OpCodes.Ret);
        var made = (Func<int, int>)method.CreateDelegate(typeof(Func<int, int>));
        return made(1) + made(2);
    }

    static int Emitted(string name)
    {
        var assembly = AppDomain.CurrentDomain.DefineDynamicAssembly(new AssemblyName(name),
                                                                     AssemblyBuilderAccess.RunAndCollect);
        var type = assembly.DefineDynamicModule(name).DefineType(name + "Type", TypeAttributes.Public);
        var method = type.DefineMethod("Three", MethodAttributes.Public | MethodAttributes.Static, typeof(int),
                                       Type.EmptyTypes);
        var code = method.GetILGenerator();
        code.Emit(OpCodes.Ldc_I4_3);
        code.Emit(OpCodes.Ret);
        return (int)type.CreateType().GetMethod("Three").Invoke(null, null);
    }

    public static int Main(string[] paths)
    {
        int sum = 0;
        for (int round = 0; round < 4; round++) {
            foreach (string path in paths) {
                sum += InDomain(path, false, 2);
                sum += InDomain(path, true, 3);
            }
            for (int i = 0; i < 30; i++) { sum += Dynamic(round * 30 + i); }
            sum += Emitted("Made" + round);
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }
        Console.WriteLine(sum);
        return 4;
    }
}
