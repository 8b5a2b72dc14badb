public class Turns {
    static int leaf(int n) { return n + 1; }
    static int work(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += leaf(i); return sum; }
    public static void main(String[] words) throws Exception {
        Thread thread = (Thread) Class.forName("java.lang.VirtualThread").getConstructor(Runnable.class)
            .newInstance((Runnable) () -> System.out.println(work(100)));
        thread.start();
        thread.join();
        System.out.println(work(10));
    }
}
