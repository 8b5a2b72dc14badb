import java.util.*;
public class Work {
    static int hash(String text) { int sum = 0; for (char one : text.toCharArray()) { sum = sum * 31 + one; } return sum; }
    static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    public static void main(String[] words) {
        Map<String, Integer> seen = new HashMap<>();
        for (int i = 0; i < Integer.parseInt(words[0]); i++) { seen.merge("key" + i % 1000, hash("text " + i), Integer::sum); }
        System.out.println(seen.size() + " " + fib(Integer.parseInt(words[1])));
    }
}
