/** A program for JDK Flight Recorder: recursion, overloaded methods, a name beyond ASCII. Runs until it has used its processor time. */
public class Work {
    static long fold(long[] numbers, int depth) {
        long sum = 0;
        for (int round = 0; round < 200; round++) {
            for (int i = 0; i < numbers.length; i++) {
                sum += numbers[i] * (i ^ round);
            }
        }
        return depth == 0 ? sum : sum ^ fold(numbers, depth - 1);
    }

    static long fold(int[] numbers) {
        long sum = 0;
        for (int round = 0; round < 400; round++) {
            for (int number : numbers) {
                sum = sum * 31 + number;
            }
        }
        return sum;
    }

    static long größe(int[] numbers) {
        return fold(numbers) + numbers.length;
    }

    public static void main(String[] words) {
        long[] large = new long[10000];
        int[] small = new int[10000];
        long end = Long.parseLong(words[0]) * 1000000L;
        long sum = 0;
        while (java.lang.management.ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() < end) {
            sum += fold(large, 3) + größe(small);
        }
        System.out.println(sum);
    }
}
