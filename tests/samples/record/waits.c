#include <pthread.h>
#include <stdio.h>
#include <time.h>
#define KEPT __attribute__((noipa))
static long now(clockid_t clock)
{
    struct timespec at;
    clock_gettime(clock, &at);
    return at.tv_sec * 1000000000L + at.tv_nsec;
}
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long sink;
#define MEASURED(name, call)                                                                       \
    do {                                                                                           \
        const long wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);                \
        call;                                                                                      \
        const long used = now(CLOCK_THREAD_CPUTIME_ID) - cpu;                                      \
        printf("%s %ld %ld\n", name, used, now(CLOCK_MONOTONIC) - wall - used);                    \
    } while (0)
KEPT void work(long ns)
{
    for (const long end = now(CLOCK_THREAD_CPUTIME_ID) + ns; now(CLOCK_THREAD_CPUTIME_ID) < end;) {
        for (int i = 0; i < 10000; i++) {
            sink += (unsigned long)i;
        }
    }
}
KEPT void rest(long ns)
{
    const struct timespec time = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    nanosleep(&time, NULL);
}
KEPT void both(void)
{
    work(200000000);
    rest(300000000);
    for (int i = 0; i < 200; i++) {
        work(100000);
        rest(100000);
    }
}
KEPT void locked(void)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}
static void *other(void *unused)
{
    MEASURED("locked", locked());
    return unused;
}
KEPT void outer(void)
{
    MEASURED("work", work(400000000));
    MEASURED("rest", rest(1500000000));
    MEASURED("both", both());
}
int main(void)
{
    pthread_t thread;
    pthread_mutex_lock(&lock);
    pthread_create(&thread, NULL, other, NULL);
    MEASURED("outer", outer());
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    return 0;
}
