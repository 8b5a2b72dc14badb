// Methods whose endless work ends by an exception, and the calls of them, are put in where they are named.
using System; using System.Text;
public class Lost : Exception { }
public static class Shapes {
    static int left, caught;
    static void Take() { if (--left <= 0) { left = 3; throw new Lost(); } }
    static void Seen(Exception e) { caught += e == null ? 1 : 2; }
    static bool Is(Exception e) { return e is Lost; }
    /* methods */
    public static int Main() {
        Console.WriteLine("ready");
        for (string line = Console.ReadLine(); line != null; line = Console.ReadLine()) {
            StringBuilder done = new StringBuilder();
            /* calls */
            Console.WriteLine("{0} {1}", line.Split(' ')[0], done);
        }
        return 5;
    }
}
