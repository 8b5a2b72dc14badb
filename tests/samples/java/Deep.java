/* Recursion until the stack overflows; prints how deep it went. */
public class Deep {
    static int depth;

    static int down(int number) {
        depth++;
        return down(number + 1) + 1;
    }

    public static void main(String[] arguments) {
        try {
            down(0);
        } catch (StackOverflowError error) {
            System.out.println(depth);
        }
    }
}
