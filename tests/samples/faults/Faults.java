import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Each line of input makes machine faults that the JVM turns into exceptions, and prints what was caught. */
public class Faults {
    static final class Node {
        Node next;
        int value;
        long[] values;
    }

    static int depth;

    static int follow(Node node) {
        return node.next.value + node.value;
    }

    static long index(Node node) {
        return node.values[3];
    }

    static int divide(int a, int b) {
        return a / b;
    }

    static int endless(int n) {
        depth++;
        return endless(n + 1) + 1;
    }

    static int batch() {
        int caught = 0;
        Node node = new Node();
        node.next = new Node();
        for (int i = 0; i < 3000; i++) {
            try {
                caught += follow(i % 3 == 0 ? node.next : node);
            } catch (NullPointerException e) {
                caught++;
            }
            try {
                caught += (int) index(node);
            } catch (NullPointerException e) {
                caught++;
            }
            try {
                caught += divide(i, i % 2);
            } catch (ArithmeticException e) {
                caught++;
            }
        }
        try {
            endless(0);
        } catch (StackOverflowError e) {
            caught += depth > 1000 ? 1 : 1000000;
        }
        return caught;
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        while (input.readLine() != null) {
            System.out.println("caught " + batch());
        }
        System.exit(3);
    }
}
