// Numbers that rules change on their way into methods; tests/system/policy/changes.py knows them.
using System;
class Npc {
  int hp = 100;
  public int Hit(int damage, double factor, ref int left, byte small) { hp -= (int)(damage*factor); left--; return hp + small; }
  public static bool Ask(bool yes) { return yes; }
}
class Changed { static void Main() { var n = new Npc(); int left = 5;
  for (int i = 1; i <= 4; i++) { int d = i; int r = n.Hit(d, 1.0, ref left, 200); Console.WriteLine("{0} {1} {2}", d, r, left); }
  Console.WriteLine(Npc.Ask(false)); } }
