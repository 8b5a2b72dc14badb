/** Calls with values of every type, whose results it prints. */
public class Kinds {
    enum Color { RED, GREEN { }, BLUE }

    static class Refused extends Exception {
        Refused(String message) {
            super(message);
        }
    }

    static class Npc {
        final int life;

        Npc(int life) {
            this.life = life;
        }

        int hit(int damage, String by) {
            return life - damage;
        }

        static String join(String left, String right) {
            return left + right;
        }

        double scale(double by, float more) {
            return by * more;
        }

        static long wide(long big, boolean yes, byte small, char letter, short number) {
            return yes ? big + small + letter + number : 0;
        }

        static Color paint(Color color, int[] points, String[][] names, Object object) {
            return color == Color.GREEN ? Color.BLUE : null;
        }

        static void plain(int number, boolean yes, char letter) {
        }

        static int fail(int depth) throws Refused {
            if (depth == 0) {
                throw new Refused("too deep");
            }
            try {
                return fail(depth - 1) + 1;
            } finally {
                plain(depth, true, 'x');
            }
        }

        boolean ask() {
            return false;
        }

        synchronized float rate(float of) {
            return of / 2;
        }
    }

    static String told(boolean deep) {
        try {
            return "" + Npc.fail(deep ? 1 : -1);
        } catch (Refused | StackOverflowError exception) {
            return exception.getClass().getName();
        } catch (Exception exception) {
            return exception.getClass().getName() + ": " + exception.getMessage();
        }
    }

    public static void main(String[] arguments) {
        Npc npc = new Npc(100);
        System.out.println(npc.hit(30, "J\u00f6rg \"\u20ac\" \ud83d\ude00") + " " + npc.hit(-5, null));
        System.out.println(Npc.join("one", "x".repeat(80)).length());
        System.out.println(npc.scale(1.5, 2f));
        System.out.println(Npc.wide(1L << 40, true, (byte) -3, 'a', (short) -300));
        System.out.println(Npc.paint(Color.GREEN, new int[3], new String[2][], npc) + " "
                + Npc.paint(null, null, null, "text"));
        Npc.plain(-7, false, '\u00e4');
        System.out.println(told(true));
        System.out.println(npc.ask() + " " + npc.rate(3));
    }
}
