/* Ends in the middle of its calls. exit: main calls work, which calls small twice and then exits.
 * loop: loop calls small for ever, in rounds of 2 ms. again: again calls small once and returns;
 * called a second time, it calls small for ever. recurse: recurse calls itself through descend for
 * ever; the inner calls return. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SMALL_NS = 200000, ROUND_NS = 2000000, WORK_NS = 20000000, PAUSE_US = 5000 };

static long now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static inline void spin(long nanoseconds)
{
    const long end = now_ns() + nanoseconds;
    while (now_ns() < end) {
    }
}

__attribute__((noinline)) void small(void)
{
    spin(SMALL_NS);
}

__attribute__((noinline)) void work(void)
{
    small();
    spin(WORK_NS);
    small();
    exit(0);
}

__attribute__((noinline)) void loop(void)
{
    puts("loops");
    fflush(stdout);
    for (;;) {
        spin(ROUND_NS);
        small();
    }
}

__attribute__((noinline, noclone)) void again(int rounds)
{
    for (; rounds != 0; rounds--) {
        small();
        usleep(PAUSE_US);
    }
    puts("again");
}

__attribute__((noinline, noclone)) void recurse(int levels);

__attribute__((noinline, noclone)) void descend(int levels)
{
    recurse(levels);
    usleep(PAUSE_US);
}

__attribute__((noinline, noclone)) void recurse(int levels)
{
    while (levels != 0) {
        descend(levels - 1);
    }
    spin(SMALL_NS);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "loop") == 0) {
        loop();
    }
    if (argc > 1 && strcmp(argv[1], "again") == 0) {
        again(1);
        again(-1);
    }
    if (argc > 1 && strcmp(argv[1], "recurse") == 0) {
        recurse(1);
    }
    work();
    return 0;
}
