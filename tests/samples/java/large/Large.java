/** Methods with and without room for probes: a test puts many steps in where they are named. */
class Large {
    static int full(int x) {
        /* full */
        return x;
    }

    static int far(int x) {
        if (x > 0) {
            /* far */
            if (x == 7) {
                return 1;
            }
        }
        return x;
    }

    static int small(int x) {
        return full(x) + far(x);
    }

    public static void main(String[] arguments) {
        System.out.println(small(1));
    }
}
