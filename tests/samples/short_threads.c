/* Starts COUNT short threads, of which twenty are alive at a time. Each makes 0 to 66 calls and
 * ends. With PER_SECOND, starts at most that many threads a second. Prints the number of calls of
 * short_leaf.
 *
 * short_threads COUNT [PER_SECOND] */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ALIVE = 20, CALLS_BELOW = 67, NS_PER_S = 1000000000 };

static atomic_ulong total;
static _Thread_local volatile unsigned long made;

__attribute__((noinline)) void short_leaf(void)
{
    made++;
}

static void *call_and_end(void *argument)
{
    for (size_t i = 0; i < (size_t)argument; i++) {
        short_leaf();
    }
    atomic_fetch_add(&total, made);
    return NULL;
}

static unsigned long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long)now.tv_sec * NS_PER_S + (unsigned long)now.tv_nsec;
}

/* Sleeps until the time of the next thread, unless that time has passed. */
static void keep_pace(unsigned long turn_ns)
{
    const struct timespec turn = {(time_t)(turn_ns / NS_PER_S), (long)(turn_ns % NS_PER_S)};
    if (now_ns() < turn_ns) {
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &turn, NULL);
    }
}

int main(int argc, char **argv)
{
    pthread_t threads[ALIVE];
    const size_t count = argc >= 2 ? strtoul(argv[1], NULL, 10) : 0;
    const unsigned long per_second = argc >= 3 ? strtoul(argv[2], NULL, 10) : 0;
    const unsigned long start_ns = now_ns();
    for (size_t i = 0; i < count + ALIVE; i++) {
        if (per_second != 0) {
            keep_pace(start_ns + i * NS_PER_S / per_second);
        }
        if (i >= ALIVE && i - ALIVE < count) {
            pthread_join(threads[i % ALIVE], NULL);
        }
        if (i < count && pthread_create(&threads[i % ALIVE], NULL, call_and_end,
                                        (void *)(i % CALLS_BELOW)) != 0) {
            return 2;
        }
    }
    printf("calls %lu\n", (unsigned long)total);
    return 0;
}
