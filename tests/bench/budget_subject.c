/* The program that budget.py records. It calls one tiny function nearly all the time. After some
 * tenths of a second, the next of eight tiny functions takes its place. A decision about one
 * function is therefore soon useless. */
#include <stdio.h>
#include <stdlib.h>

enum { FUNCTIONS = 8, BATCH = 10000 };

#define TINY(name, factor)                                                                         \
    __attribute__((noinline)) static unsigned name(unsigned value)                                 \
    {                                                                                              \
        return (value ^ value >> 7) * (factor) + 1;                                                \
    }

TINY(tiny_0, 3)
TINY(tiny_1, 5)
TINY(tiny_2, 7)
TINY(tiny_3, 11)
TINY(tiny_4, 13)
TINY(tiny_5, 17)
TINY(tiny_6, 19)
TINY(tiny_7, 23)

static unsigned (*const volatile tiny[FUNCTIONS])(unsigned) = {tiny_0, tiny_1, tiny_2, tiny_3,
                                                               tiny_4, tiny_5, tiny_6, tiny_7};

__attribute__((noinline)) static unsigned run_batch(int which, unsigned value)
{
    unsigned (*const function)(unsigned) = tiny[which];
    for (int i = 0; i < BATCH; i++) {
        value = function(value);
        for (int k = 0; k < 8; k++) {
            value = value * 1664525 + 1013904223; /* takes some nanoseconds */
        }
    }
    return value;
}

/* The amount of work is fixed, so that CPU times of runs can be compared. */
int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 1;
    unsigned value = 1;
    for (int round = 0; round < rounds; round++) {
        for (int which = 0; which < FUNCTIONS; which++) {
            for (int batch = 0; batch < 4000; batch++) {
                value = run_batch(which, value);
            }
        }
    }
    printf("%u\n", value);
    return 0;
}
