import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.HashMap;
import java.util.Map;

/** fib SLICES: CPU nanoseconds of the thread per 1,000 calls, least of so many slices; with a further argument again
 * each time a line comes in. text ROUNDS: a program whose work is done by the JDK. mixed ROUNDS: one of small and
 * larger methods of its own. hello: nothing. */
public class JvmBench {
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    static int fib(int n) {
        return n < 2 ? n : fib(n - 1) + fib(n - 2);
    }

    static long calls(int n) {
        return 2L * value(n + 1) - 1;
    }

    static long value(int n) {
        long a = 0;
        long b = 1;
        for (int i = 0; i < n; i++) {
            long next = a + b;
            a = b;
            b = next;
        }
        return a;
    }

    static long least(int slices) {
        long best = Long.MAX_VALUE;
        int sum = 0;
        for (int i = 0; i < slices; i++) {
            long before = THREADS.getCurrentThreadCpuTime();
            sum += fib(20);
            best = Math.min(best, THREADS.getCurrentThreadCpuTime() - before);
        }
        return sum == 42 ? 0 : best * 1000 / calls(20);
    }

    static int words(String text) {
        Map<String, Integer> counts = new HashMap<>();
        for (String word : text.split(" ")) {
            counts.merge(word, 1, Integer::sum);
        }
        return counts.size();
    }

    static int text(int rounds) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 2000; i++) {
            text.append(Integer.toHexString(i * 7919 % 997)).append(' ');
        }
        int sum = 0;
        for (int i = 0; i < rounds; i++) {
            sum += words(text.toString());
        }
        return sum;
    }

    /** Sums, products and numbers with a few digits, as text. */
    static class Expression {
        final String text;
        int at;

        Expression(String text) {
            this.text = text;
        }

        boolean ends() {
            return at == text.length();
        }

        char next() {
            return ends() ? ')' : text.charAt(at);
        }

        void pass() {
            at++;
        }

        int number() {
            int value = 0;
            for (char digit = next(); digit >= '0' && digit <= '9'; digit = next()) {
                value = value * 10 + digit - '0';
                pass();
            }
            return value;
        }

        int factor() {
            if (next() != '(') {
                return number();
            }
            pass();
            int value = sum();
            pass();
            return value;
        }

        int product() {
            int value = factor();
            while (next() == '*') {
                pass();
                value *= factor();
            }
            return value;
        }

        int sum() {
            int value = product();
            while (next() == '+') {
                pass();
                value += product();
            }
            return value;
        }
    }

    static int mixed(int rounds) {
        int sum = 0;
        String text = "12*(3+45*(6+7))+890*(1+2*(3+4*(5+6)))+7*8*9+(1234+5)*6+78*(9+10)";
        for (int i = 0; i < rounds * 10000; i++) {
            sum += new Expression(text).sum() + words("a b " + (i & 63));
        }
        return sum;
    }

    public static void main(String[] arguments) throws java.io.IOException {
        if (arguments[0].equals("mixed")) {
            System.out.println(mixed(Integer.parseInt(arguments[1])));
            return;
        }
        if (arguments[0].equals("text")) {
            System.out.println(text(Integer.parseInt(arguments[1])));
            return;
        }
        if (arguments[0].equals("hello")) {
            return;
        }
        int slices = Integer.parseInt(arguments[1]);
        do {
            System.out.println(least(slices));
        } while (arguments.length > 2 && System.in.read() >= 0);
    }
}
