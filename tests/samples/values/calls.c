#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static const char *volatile last;
__attribute__((noipa)) int one(int number)
{
    return number + 1;
}
__attribute__((noipa)) void two(const char *first, const char *second)
{
    last = first;
    last = second;
}
static long now(clockid_t clock)
{
    struct timespec at;
    clock_gettime(clock, &at);
    return at.tv_sec * 1000000000L + at.tv_nsec;
}
static int compare(const void *left, const void *right)
{
    return (*(const long *)left > *(const long *)right) -
           (*(const long *)left < *(const long *)right);
}
/* Prints by how many us the median of calls with a delay rule of 2 ms exceeds 2 ms. */
static int delayed(void)
{
    static long took[200];
    for (int i = 0; i < 200; i++) {
        const long start = now(CLOCK_MONOTONIC);
        one(i);
        took[i] = now(CLOCK_MONOTONIC) - start;
    }
    qsort(took, 200, sizeof(took[0]), compare);
    printf("%g\n", (double)(took[100] - 2000000) / 1000);
    return 0;
}
static int least(void)
{
    double call = 1e9, clocks = 1e9;
    volatile unsigned long ticks = 0;
    int sum = 0;
    for (int slice = 0; slice < 40; slice++) {
        long start = now(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < 5000; i++) {
            sum = one(sum);
        }
        double took = (double)(now(CLOCK_THREAD_CPUTIME_ID) - start) / 5000;
        call = took < call ? took : call;
        start = now(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < 5000; i++) {
            ticks += __builtin_ia32_rdtsc();
            ticks += __builtin_ia32_rdtsc();
        }
        took = (double)(now(CLOCK_THREAD_CPUTIME_ID) - start) / 5000;
        clocks = took < clocks ? took : clocks;
    }
    printf("%g %g\n", call, clocks);
    return sum != 200000;
}
int main(int count, char **arguments)
{
    if (count > 1) {
        return arguments[1][0] == 'l' ? least() : delayed();
    }
    int sum = 0;
    long start = now(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < CALLS; i++) {
        sum = one(sum);
    }
    const long ones = now(CLOCK_THREAD_CPUTIME_ID) - start;
    start = now(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < CALLS; i++) {
        two("a short text", "another one");
    }
    const long twos = now(CLOCK_THREAD_CPUTIME_ID) - start;
    start = now(CLOCK_THREAD_CPUTIME_ID);
    for (unsigned i = 0; i < 100 * CALLS; i++) { /* allocates and frees one block in turn */
        last = malloc(40);
        free((void *)last);
    }
    const long pairs = now(CLOCK_THREAD_CPUTIME_ID) - start;
    static void *held[1000];
    start = now(CLOCK_THREAD_CPUTIME_ID);
    for (unsigned i = 0; i < 100 * CALLS; i++) { /* blocks of all sizes, many of which are live */
        void **place = &held[i % 1000u * 919 % 1000];
        free(*place);
        *place = malloc((size_t)(i % 2000u * 31 % 2000));
    }
    const long blocks = now(CLOCK_THREAD_CPUTIME_ID) - start;
    printf("%g %g %g %g\n", (double)ones / CALLS, (double)twos / CALLS, (double)pairs / CALLS / 100,
           (double)blocks / CALLS / 100);
    return sum != CALLS;
}
