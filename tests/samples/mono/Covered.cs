// What is entered depends on the words of the command line; tests/system/record/coverage.py lists it.
using System;
using System.Runtime.InteropServices;

namespace Plant.Roots {
    public abstract class Root {
        public abstract int Depth();              // no code: not there
        public virtual int Width() { return 1; }
    }
    public class Carrot : Root {
        public override int Depth() { return 3; }
        public override int Width() { return 2; }
        public class Leaf { public int Count() { return 5; } }
    }
}

namespace Plant {
    public interface IGrow { void Grow(int by); } // no code: not there
    public class Box<T> : IGrow {
        T held;
        public Box(T value) { held = value; }
        public T Held { get { return held; } set { held = value; } }
        public void Grow(int by) { if (by > 100) Never(); }
        void Never() { Console.WriteLine("never"); }
    }
}

class Covered {
    [DllImport("libc")] static extern int getpid(); // native: not there
    static int Unused(int a, string b) { return getpid() + a + b.Length; }

    static int Main(string[] words)
    {
        int sum = 0;
        foreach (string word in words) {
            if (word == "carrot") sum += Root(new Plant.Roots.Carrot());
            if (word == "leaf") sum += new Plant.Roots.Carrot.Leaf().Count();
            if (word == "box") {
                var box = new Plant.Box<int>(4);
                var text = new Plant.Box<string>("x");
                text.Grow(1);
                box.Held = 7;
                sum += box.Held;
            }
        }
        Console.WriteLine(sum);
        return words.Length > 9 ? Unused(1, "b") : 0;
    }
    static int Root(Plant.Roots.Root root) { return root.Depth() + root.Width(); }
}
