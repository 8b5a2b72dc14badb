/** A short method, called a thousand times. */
class Adaptive {
    static int step(int n) {
        return n + 1;
    }

    public static void main(String[] arguments) {
        int n = 0;
        while (n < 1000) {
            n = step(n);
        }
        System.out.print(n);
    }
}
