/* Makes calls that rules change. Prints what each call received, and what its caller received
 * (tests/system/policy/changes.py). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* With -fipa-ra, callers may rely on registers that a function of the same file does not change. */
#define NOT_INLINED __attribute__((noipa))

static int runs;

NOT_INLINED int chg_open(const char *path, int flags, long mode)
{
    runs++;
    __asm__ volatile("" ::: "memory");
    return path != NULL ? flags + (int)mode : -7;
}

NOT_INLINED double chg_scale(double value, float by)
{
    runs++;
    __asm__ volatile("" ::: "memory");
    return value * (double)by;
}

NOT_INLINED int chg_outer(int value)
{
    runs++;
    const int result = chg_open("in", value, 1);
    __asm__ volatile("" ::: "memory");
    return result + 100;
}

NOT_INLINED long chg_wait(long value)
{
    runs++;
    __asm__ volatile("" ::: "memory");
    return value;
}

static void open_all(void)
{
    for (int i = 1; i <= 8; i++) {
        errno = 0;
        runs = 0;
        const int result = chg_open("path", i, 10L * i);
        printf("open %d ret %d errno %d runs %d\n", i, result, errno, runs);
    }
}

int main(int argc, char **argv)
{
    struct timespec before;
    struct timespec after;
    open_all();
    runs = 0;
    printf("scale %.3f", chg_scale(1.5, 2.0F));
    printf(" runs %d\n", runs);
    runs = 0;
    printf("outer %d", chg_outer(5));
    printf(" runs %d\n", runs);
    clock_gettime(CLOCK_MONOTONIC, &before);
    (void)chg_wait(4);
    clock_gettime(CLOCK_MONOTONIC, &after);
    printf("waited %ld\n",
           (after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec);
    if (argc > 1 && strcmp(argv[1], "loop") == 0) {
        char byte;
        puts("ready");
        fflush(stdout);
        while (read(0, &byte, 1) == 1) {
            runs = 0;
            const int result = chg_open("path", 1, 1);
            printf("ret %d runs %d\n", result, runs);
            fflush(stdout);
        }
    }
    return 0;
}
