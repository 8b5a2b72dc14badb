#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noipa))
#endif
static long used(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000L +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000L;
}
static _Thread_local volatile unsigned long sink;
static _Thread_local long inner;
static void spin(long ns)
{
    for (const long end = used() + ns; used() < end;) {
        for (int i = 0; i < 1000; i++) {
            sink += (unsigned long)i;
        }
    }
}
KEPT void cpu_burn(long ns)
{
    const long start = used();
    spin(ns);
    inner = used() - start;
}
KEPT void cpu_wait(long ns)
{
    const long start = used();
    const struct timespec rest = {.tv_nsec = ns};
    nanosleep(&rest, NULL);
    inner = used() - start;
}
KEPT int cpu_again(int depth)
{
    const long start = used();
    cpu_burn(200000);
    const int below = depth > 0 ? cpu_again(depth - 1) : 0;
    inner = used() - start;
    return below + 1;
}
KEPT void cpu_last(long ns)
{
    spin(ns);
}
KEPT void cpu_tail(long ns) /* reports its own time until it jumps */
{
    const long start = used();
    spin(ns);
    inner = used() - start;
    cpu_last(ns);
}
#define MEASURED(call)                                                                             \
    do {                                                                                           \
        const long before = used();                                                                \
        call;                                                                                      \
        printf("%d %s %ld %ld\n", number, #call, inner, used() - before);                          \
    } while (0)
static void *run(void *given)
{
    const int number = *(int *)given;
    for (int round = 0; round < ROUNDS; round++) {
        MEASURED(cpu_burn(2000000));
        MEASURED(cpu_wait(3000000));
        MEASURED((void)cpu_again(3));
        MEASURED(cpu_tail(500000));
    }
    return NULL;
}
int main(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, run, &numbers[i]);
        /* one thread after the other, so that the lines are in the sequence of the calls */
        pthread_join(threads[i], NULL);
    }
    return 0;
}
