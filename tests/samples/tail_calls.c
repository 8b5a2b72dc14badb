/* Calls that end with a jump to another function. They jump at once, on a condition, in a chain,
 * and to a leaf function that loops to its own first instruction. tail_calls [ROUNDS] */
#include <stdio.h>
#include <stdlib.h>

#if defined(__clang__)
#define PART __attribute__((noinline))
#else
#define PART __attribute__((noipa))
#endif

enum { ROUNDS = 20000 };

PART long tail_end(long value)
{
    /* the computation changes the flags; address arithmetic alone would not */
    return value * 5 + (value >> 3);
}

PART long tail_loop(long value)
{
    do {
        value = value / 2 + 1;
    } while (value > 2);
    return value;
}

PART long tail_start(long value)
{
    return tail_end(value ^ 5);
}

PART long tail_chain(long value)
{
    return tail_start(value + 7);
}

PART long tail_maybe(long value)
{
    if (value & 1) {
        return tail_end(value);
    }
    return value;
}

PART long tail_to_loop(long value)
{
    return tail_loop(value + 3);
}

int main(int count, char **arguments)
{
    const long rounds = count > 1 ? atol(arguments[1]) : ROUNDS;
    long sum = 0;
    for (long i = 0; i < rounds; i++) {
        sum += tail_start(i) + tail_chain(i) + tail_maybe(i) + tail_to_loop(i);
    }
    printf("%ld\n", sum);
    return 0;
}
