// A library with classes in namespaces of its own, and in ones that are named like the framework's.
using System.Runtime.CompilerServices;

namespace System.Acme {
    public class Inner { [MethodImpl(MethodImplOptions.NoInlining)] public static int Add(int n) { return n + 1; } }
}

namespace Acme.Game {
    public class Npc { [MethodImpl(MethodImplOptions.NoInlining)] public virtual int Hit(int n) { return n + 2; } }
    public class Troll : Npc { [MethodImpl(MethodImplOptions.NoInlining)] public override int Hit(int n) { return n + 3; } }
}

public class Victim
{
    public static int Run(int times)
    {
        int sum = 0;
        for (int i = 0; i < times; i++) {
            sum += System.Acme.Inner.Add(i) + new Acme.Game.Npc().Hit(i) + new Acme.Game.Troll().Hit(i);
        }
        return sum;
    }
}
