using System;

// Each line of input makes machine faults that Mono turns into exceptions, and prints what was caught.
// With an argument, stacks overflow, too.
public static class Faults {
    class Node {
        public Node next;
        public int value;
        public virtual int Own() { return value; }
    }

    static int Follow(Node node) { return node.next.value + node.value; }

    static int Call(Node node) { return node.Own(); }

    static void Store(Node node) { node.value = 1; }

    static int Divide(int a, int b) { return a / b; }

    static int Endless(int n) { return Endless(n + 1) + 1; }

    static int Caught<T>(Action call) where T : Exception {
        try { call(); } catch (T) { return 1; } finally { ended++; }
        return 0;
    }

    static int ended;

    static int Batch(bool overflows) {
        int caught = 0;
        for (int i = 0; i < 300; i++) {
            caught += Caught<NullReferenceException>(() => Follow(new Node()));
            caught += Caught<NullReferenceException>(() => Call(null));
            caught += Caught<NullReferenceException>(() => Store(null));
            caught += Caught<DivideByZeroException>(() => Divide(i, i - i));
        }
        if (overflows)
            caught += Caught<StackOverflowException>(() => Endless(0));
        return caught;
    }

    public static int Main(string[] arguments) {
        while (Console.ReadLine() != null)
            Console.WriteLine("caught " + Batch(arguments.Length > 0) + " ended " + ended);
        return 3;
    }
}
