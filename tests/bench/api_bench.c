/* Measures what the calls of sojourn.h cost their thread. Run it alone, and under `sojourn record`.
 */
#include "agent/include/sojourn.h"

#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { ROUNDS = 9, CALLS = 2000 };

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

#define MEASURE(name, call)                                                                        \
    do {                                                                                           \
        double best = 1e9;                                                                         \
        for (int round = 0; round < ROUNDS; round++) {                                             \
            const uint64_t start = now_ns();                                                       \
            for (int i = 0; i < CALLS; i++) {                                                      \
                call;                                                                              \
                __asm__ volatile("");                                                              \
            }                                                                                      \
            const double each = (double)(now_ns() - start) / CALLS;                                \
            best = each < best ? each : best;                                                      \
        }                                                                                          \
        printf("%-12s %6.2f ns\n", name, best);                                                    \
    } while (0)

int main(void)
{
    MEASURE("empty loop", (void)0);
    MEASURE("frame_tick", sojourn_frame_tick());
    MEASURE("mark", sojourn_mark_begin("phase"));
    MEASURE("start", sojourn_start());
    MEASURE("dump_flight", sojourn_dump_flight());
    return 0;
}
