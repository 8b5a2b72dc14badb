import java.util.ArrayList;
import java.util.List;

/** Calls whose values a rule names by the class alone. Prints each call as function.txt has it. */
public class Own {
    enum Color { RED, GREEN { }, BLUE }

    static final int RANDOM_CALLS = 500;

    static long whole(byte small, short number, int usual, long big) {
        return small + number + usual + big;
    }

    double real(float single, double twice) {
        return single * twice;
    }

    static char letter(char letter, boolean yes) {
        return yes ? letter : 'n';
    }

    static String text(String name, CharSequence any, Object object) {
        return name + any + object;
    }

    static Object boxed(Integer usual, Long big, Double twice, Boolean yes, Character letter, Short number, Byte small,
            Float single) {
        return usual;
    }

    static Color color(Color color, Object object) {
        return Color.BLUE;
    }

    static int[] array(int[] numbers, String[] names, Object[] objects, char[] letters, double[] answers) {
        return new int[] {7, 8};
    }

    static <T> T same(T value) {
        return value;
    }

    static <T extends Comparable<T>> List<T> listed(T value) {
        return null;
    }

    static int many(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j, int k, int l, int m, int n,
            int o) {
        return a + o;
    }

    static void none() {
    }

    static boolean refuse(String why) {
        throw new IllegalStateException(why);
    }

    static double mixed(int number, long big, double real, String text) {
        return number + real;
    }

    static void print(String call, String result) {
        System.out.println("Own." + call + "ret:" + result);
    }

    /** Calls `mixed` with numbers of a linear congruential generator, and prints them. */
    static void random() {
        long state = 42;
        for (int i = 0; i < RANDOM_CALLS; i++) {
            state = state * 6364136223846793005L + 1442695040888963407L;
            int number = (int) (state >> 32);
            double real = Double.longBitsToDouble(state & 0x7fefffffffffffffL);
            System.out.println("mixed\t" + number + "\t" + state + "\t" + real + "\t" + Long.toString(state, 36) + "\t"
                    + mixed(number, state, real, Long.toString(state, 36)));
        }
    }

    public static void main(String[] arguments) {
        print("whole(-8,-300,70000,1099511627776)",
                "" + whole((byte) -8, (short) -300, 70000, 1L << 40));
        print("real(1.5,2.0)", "" + new Own().real(1.5f, 2.0));
        print("letter('\u00e4',1)", "'" + letter('\u00e4', true) + "'");
        print("text(\"J\u00f6rg\",\"any\",\"object\")", '"' + text("J\u00f6rg", "any", "object") + '"');
        print("text(null,null,null)", '"' + text(null, null, null) + '"');
        print("boxed(-7,1099511627776,0.5,1,'x',-3,5,2.5)",
                "" + boxed(-7, 1L << 40, 0.5, true, 'x', (short) -3, (byte) 5, 2.5f));
        print("color(GREEN,BLUE)", "" + color(Color.GREEN, Color.BLUE));
        print("array(int[3]{1,-2,3},java.lang.String[2]{\"a\",null},java.lang.Object[5]{1,true,'c',RED,...},"
                + "char[1]{'z'},double[2]{0.30000000000000004,-2.0})", "int[2]{7,8}");
        array(new int[] {1, -2, 3}, new String[] {"a", null}, new Object[] {1, true, 'c', Color.RED, 5},
                new char[] {'z'}, new double[] {0.1 + 0.2, -2});
        print("same(\"generic\")", '"' + same("generic") + '"');
        print("same(12)", "" + same(12));
        print("listed(12)", "" + listed(12));
        print("many(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15)",
                "" + many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
        none();
        print("none()", "-");
        try {
            refuse("no");
        } catch (IllegalStateException exception) {
            print("refuse(\"no\")", "!" + exception.getClass().getName());
        }
        List<Object> boxes = new ArrayList<>();
        boxes.add(same(3L));
        print("same(3)", "" + boxes.get(0));
        random();
    }
}
