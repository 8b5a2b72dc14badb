/* Switches whose arms lie anywhere: a set of arms in a cold part, arms that end by jumps,
 * impossible cases, and a loop that starts at the entry. Without symbols only the jump tables show
 * that a cold part belongs to its function. */
#include <stdio.h>
#include <stdlib.h>

#define HOOKED __attribute__((noinline, noclone))
#define COLD __attribute__((noinline, noclone, cold))

static volatile long steps;

COLD static void die(int line)
{
    printf("line %d\n", line);
    exit(3);
}

COLD static void rare(void)
{
    steps++;
    __asm__ volatile("");
}

HOOKED static long leaf(long x)
{
    __asm__ volatile("");
    return x + 1;
}

/* An arm whose bit is set in `cold` aborts. An arm whose bit is set in `back` jumps back from the
 * cold part. */
#define ARM(number, cold, back, x)                                                                 \
    case number:                                                                                   \
        if ((cold) >> (number)&1) {                                                                \
            die(number);                                                                           \
        }                                                                                          \
        if ((back) >> (number)&1) {                                                                \
            rare();                                                                                \
            (x) ^= 5 << (number);                                                                  \
            break;                                                                                 \
        }                                                                                          \
        if ((number) == 3) {                                                                       \
            return leaf(x);                                                                        \
        }                                                                                          \
        (x) += 11 * (number) * (x);                                                                \
        if ((number)&1) {                                                                          \
            return (x) >> (number);                                                                \
        }                                                                                          \
        break;

#define SWITCH(name, cold, back, impossible)                                                       \
    HOOKED static long name(unsigned kind, long x)                                                 \
    {                                                                                              \
        switch (kind) {                                                                            \
            ARM(0, cold, back, x)                                                                  \
            ARM(1, cold, back, x)                                                                  \
            ARM(2, cold, back, x)                                                                  \
            ARM(3, cold, back, x)                                                                  \
            ARM(4, cold, back, x)                                                                  \
            ARM(5, cold, back, x)                                                                  \
            ARM(6, cold, back, x)                                                                  \
            ARM(7, cold, back, x)                                                                  \
        default:                                                                                   \
            impossible;                                                                            \
        }                                                                                          \
        return x * 3;                                                                              \
    }

#define BOTH(name, cold, back)                                                                     \
    SWITCH(checked_##name, cold, back, die(__LINE__))                                              \
    SWITCH(free_##name, cold, back, __builtin_unreachable())
#define ALL(each)                                                                                  \
    each(a, 1, 0) each(b, 2, 0) each(c, 4, 0) each(d, 8, 0) each(e, 0x10, 0) each(f, 0x20, 0)      \
        each(g, 0x40, 0) each(h, 0x80, 0) each(i, 3, 0) each(j, 0xc0, 0) each(k, 0x81, 0)          \
            each(l, 0x7e, 0) each(m, 0, 1) each(n, 0, 2) each(o, 0, 0x80) each(p, 0, 0x81)         \
                each(q, 1, 2) each(r, 2, 1) each(s, 0x0f, 0) each(t, 0xf0, 0) each(u, 1, 0x80)     \
                    each(v, 0x80, 1) each(w, 0x55, 0xaa) each(x, 0, 0)
ALL(BOTH)

/* Some arms lead to the first instruction of the function. */
HOOKED static const unsigned char *skip(const unsigned char *text)
{
    for (;;) {
        switch (*text++) {
        case 'a':
        case 'c':
            break;
        case 'd':
            text++;
            break;
        case 'e':
            text += 2;
            break;
        case 'g':
            return text;
        case 'h':
            return text + 1;
        case 'i':
            return text - 1;
        default:
            return NULL;
        }
    }
}

typedef long handler(long x, unsigned left);
static handler *const handlers[4];

/* An array of functions is not a jump table, even if the first one is the function that jumps. */
#define HANDLER(name, change)                                                                      \
    HOOKED static long name(long x, unsigned left)                                                 \
    {                                                                                              \
        x change;                                                                                  \
        return left == 0 ? x : handlers[x & 3](x, left - 1);                                       \
    }
HANDLER(handle_add, += 7)
HANDLER(handle_mix, ^= 0x1234)
HANDLER(handle_half, /= 2)
HANDLER(handle_more, *= 3)
static handler *const handlers[4] = {handle_add, handle_mix, handle_half, handle_more};

#define CALL(name, cold, back)                                                                     \
    for (unsigned kind = 0; kind < 8; kind++) {                                                    \
        if (((cold) >> kind & 1) == 0) {                                                           \
            sum += checked_##name(kind, sum) + free_##name(kind, sum);                             \
        }                                                                                          \
    }

int main(int count, char **arguments)
{
    long sum = count;
    (void)arguments;
    for (unsigned round = 0; round < 10; round++) {
        ALL(CALL)
        sum += *skip((const unsigned char *)"acdxexxaacghijk");
        for (unsigned i = 0; i < 4; i++) {
            sum = handlers[i](sum & 0xffffff, 20);
        }
    }
    printf("%ld %ld\n", sum, (long)steps);
    return 0;
}
