// Made hostile by Hostile.cs, or its file damaged, while Shelter.cs runs it.
using System.Runtime.CompilerServices;

public class Victim
{
    [MethodImpl(MethodImplOptions.NoInlining)] public static int First(int a) { return a + 1; }
    [MethodImpl(MethodImplOptions.NoInlining)] public static int Second(string a) { return a.Length; }
    [MethodImpl(MethodImplOptions.NoInlining)] public static int Third(int a) { return a * 2; }
    [MethodImpl(MethodImplOptions.NoInlining)] public static int Fourth(int a) { return a - 1; }
    [MethodImpl(MethodImplOptions.NoInlining)] public static int Fifth(int a) { return a ^ 1; }

    public static int Run(int times)
    {
        int sum = 0;
        for (int i = 0; i < times; i++) { sum += First(i) + Second("four") + Third(i) + Fourth(i) + Fifth(i); }
        return sum;
    }
}
