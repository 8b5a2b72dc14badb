/* A program whose functions are in normal or, with REVERSED, in reverse sequence. The argument says
 * how often `finish` is called. */
#include <stdlib.h>

#define WORKER __attribute__((noinline)) static

static volatile unsigned long store[256];

WORKER void prepare(unsigned long n);
WORKER unsigned long compute(unsigned long n);
WORKER unsigned long finish(unsigned long n);

#define PREPARE                                                                                    \
    WORKER void prepare(unsigned long n)                                                           \
    {                                                                                              \
        for (unsigned long i = 0; i < n * 256; i++) {                                              \
            store[i & 255] = i * 7;                                                                \
        }                                                                                          \
    }
#define COMPUTE                                                                                    \
    WORKER unsigned long compute(unsigned long n)                                                  \
    {                                                                                              \
        unsigned long sum = n;                                                                     \
        for (unsigned long i = 0; i < n * 1024; i++) {                                             \
            sum = sum * 33 ^ store[(i + sum) & 255];                                               \
        }                                                                                          \
        return sum;                                                                                \
    }
#define FINISH                                                                                     \
    WORKER unsigned long finish(unsigned long n)                                                   \
    {                                                                                              \
        unsigned long bits = 0;                                                                    \
        for (unsigned long i = 0; i < n * 128; i++) {                                              \
            bits += (store[i & 255] >> (i & 31)) & 1;                                              \
        }                                                                                          \
        return bits;                                                                               \
    }

#ifdef REVERSED
FINISH COMPUTE PREPARE
#else
PREPARE COMPUTE FINISH
#endif

    int
    main(int argc, char **argv)
{
    const int times = argc > 1 ? atoi(argv[1]) : 1;
    prepare(500);
    unsigned long sum = compute(500);
    for (int i = 0; i < times; i++) {
        sum += finish(20);
    }
    return sum == 0;
}
