import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.invoke.MethodHandles;

/** A thread that stands in the initializer of a hidden class from "begin" to "end" of its input. */
public class Slow {
    static volatile boolean stands, ends;
    static long sum;

    static void initialize() {
        stands = true;
        while (!ends) {
            turn(100_000);
        }
    }

    /** Compiled, it has no register left to point to frames with. */
    static void turn(int times) {
        long a = sum + 1, b = sum + 2, c = sum + 3, d = sum + 4, e = sum + 5, f = sum + 6, g = sum + 7;
        long h = sum - 1, j = sum - 2, k = sum - 3, l = sum - 4, m = sum - 5, n = sum - 6, o = sum - 7;
        for (int i = 0; i < times; i++) {
            a += d ^ b >>> 1;
            b += e ^ c >>> 2;
            c += f ^ d >>> 3;
            d += g ^ e >>> 4;
            e += h ^ f >>> 5;
            f += j ^ g >>> 6;
            g += k ^ h >>> 7;
            h += l ^ j >>> 8;
            j += m ^ k >>> 9;
            k += n ^ l >>> 10;
            l += o ^ m >>> 11;
            m += a ^ n >>> 12;
            n += b ^ o >>> 13;
            o += c ^ a >>> 14;
        }
        sum = a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ j ^ k ^ l ^ m ^ n ^ o;
    }

    static void define() {
        try (InputStream file = Slow.class.getResourceAsStream("HiddenSlow.class")) {
            MethodHandles.lookup().defineHiddenClass(file.readAllBytes(), true);
        } catch (IOException | IllegalAccessException problem) {
            throw new IllegalStateException(problem);
        }
    }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        Thread definer = new Thread(Slow::define);
        for (int i = 0; i < 20_000; i++) {
            turn(100);
        }
        System.out.println("ready");
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            if (line.startsWith("begin")) {
                definer.start();
                while (!stands) {
                    Thread.onSpinWait();
                }
            } else {
                ends = true;
                definer.join();
            }
            System.out.println(line);
        }
        System.out.println("wrong=0");
        System.exit(5);
    }
}
