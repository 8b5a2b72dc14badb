/* Functions that are built twice: in this order, and (REVERSED) in the opposite order after more
 * code, so that they have other addresses. `twin_a` and `twin_b` have the same code. `call_up` and
 * `call_down` differ only in what they call. */
#define LEAF __attribute__((noinline))

static volatile int table[64];
static volatile double scale = 1.5;
static const char *const words[] = {"one", "two", "three", "four", "five", "six", "seven"};

LEAF int count_up(int n);
LEAF int count_down(int n);
LEAF double weigh(int n);
LEAF const char *word_of(int n);
LEAF int choose(int n);
LEAF int call_up(int n);
LEAF int call_down(int n);
LEAF int twin_a(int n);
LEAF int twin_b(int n);

#define COUNT_UP                                                                                   \
    LEAF int count_up(int n)                                                                       \
    {                                                                                              \
        int sum = 0;                                                                               \
        for (int i = 0; i < n; i++) {                                                              \
            sum += table[i & 63] * 3;                                                              \
        }                                                                                          \
        return sum + (n > 9 ? count_up(n - 1) : 0);                                                \
    }
#define COUNT_DOWN                                                                                 \
    LEAF int count_down(int n)                                                                     \
    {                                                                                              \
        int sum = 0;                                                                               \
        for (int i = 0; i < n; i++) {                                                              \
            sum += table[i & 63] * 5;                                                              \
        }                                                                                          \
        return sum + (n > 9 ? count_down(n - 1) : 0);                                              \
    }
#define WEIGH                                                                                      \
    LEAF double weigh(int n)                                                                       \
    {                                                                                              \
        scale = scale * 2.25 + n;                                                                  \
        return scale + count_up(n);                                                                \
    }
#define WORD_OF                                                                                    \
    LEAF const char *word_of(int n)                                                                \
    {                                                                                              \
        table[n & 7] += count_down(n) + 1;                                                         \
        return words[n % 7];                                                                       \
    }
#define CHOOSE                                                                                     \
    LEAF int choose(int n)                                                                         \
    {                                                                                              \
        switch (n) {                                                                               \
        case 0:                                                                                    \
            return count_up(11);                                                                   \
        case 1:                                                                                    \
            return count_down(7) * 2;                                                              \
        case 2:                                                                                    \
            return (int)weigh(3);                                                                  \
        case 3:                                                                                    \
            return word_of(n)[0];                                                                  \
        case 4:                                                                                    \
            return table[9];                                                                       \
        default:                                                                                   \
            return n * 13;                                                                         \
        }                                                                                          \
    }
#define CALLERS                                                                                    \
    LEAF int call_up(int n)                                                                        \
    {                                                                                              \
        return count_up(n + 1);                                                                    \
    }                                                                                              \
    LEAF int call_down(int n)                                                                      \
    {                                                                                              \
        return count_down(n + 1);                                                                  \
    }
#define TWINS                                                                                      \
    LEAF int twin_a(int n)                                                                         \
    {                                                                                              \
        table[1] = n * 17 + table[2];                                                              \
        return table[3];                                                                           \
    }                                                                                              \
    LEAF int twin_b(int n)                                                                         \
    {                                                                                              \
        table[1] = n * 17 + table[2];                                                              \
        return table[3];                                                                           \
    }

#ifdef REVERSED
LEAF int ballast(int n);
LEAF int ballast(int n)
{
    return n > 1 ? n * ballast(n - 1) + table[5] : 1;
}
CALLERS TWINS CHOOSE WORD_OF WEIGH COUNT_DOWN COUNT_UP
#else
COUNT_UP COUNT_DOWN WEIGH WORD_OF CHOOSE CALLERS TWINS
#endif

    int
    main(int argc, char **argv)
{
    (void)argv;
#ifdef REVERSED
    table[4] = ballast(argc);
#endif
    return choose(argc) + call_up(argc) + call_down(argc) + twin_a(argc) + twin_b(argc);
}
