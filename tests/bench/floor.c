/* Measures the least that the time stamps of an entry and an exit can cost: two clock reads, one
 * after the other. Prints one number: nanoseconds of the thread's CPU time, like the benches that
 * are compared with it. */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static inline void read_clock(void)
{
#if defined(__x86_64__)
    __asm__ volatile("rdtsc" ::: "rax", "rdx");
#else
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
#endif
}

int main(void)
{
    enum { ROUNDS = 15, PAIRS = 2000000 };
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t start = now_ns();
        for (int i = 0; i < PAIRS; i++) {
            read_clock();
            read_clock();
        }
        const double pair = (double)(now_ns() - start) / PAIRS;
        best = pair < best ? pair : best;
    }
    printf("%.3f\n", best);
    return 0;
}
