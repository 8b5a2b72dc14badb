/* A program that ends or changes abruptly while a tracer attaches: attach_fate KIND MICROSECONDS.
 * Two threads call functions until then. exit: ends with status 7. crash: ends by SIGSEGV. exec:
 * runs another program, which says so and ends with status 5. leader: its first thread ends before
 * the other, which ends the process with status 6. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long total;

__attribute__((noinline)) unsigned long fate_mix(unsigned long value)
{
    return value * 2654435761u + (value >> 7);
}

/* A thread rests between pieces of work, so that a test does not use the processor all the time. */
static void rest(unsigned long i)
{
    if (i % 20000 == 0) {
        usleep(500);
    }
}

static void *work(void *argument)
{
    for (unsigned long i = 0;; i++) {
        total = fate_mix(total + i);
        rest(i);
    }
    return argument;
}

static void work_until(long microseconds)
{
    struct timespec start;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    unsigned long i = 0;
    do {
        total = fate_mix(total);
        rest(i++);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000000 + (now.tv_nsec - start.tv_nsec) / 1000 <
             microseconds);
}

static void *outlive(void *argument)
{
    work_until(*(long *)argument);
    exit(6);
}

int main(int argc, char **argv)
{
    static long microseconds;
    pthread_t other;
    if (argc == 2) {
        usleep(800000);
        puts(argv[1]);
        return 5;
    }
    if (argc != 3) {
        return 2;
    }
    microseconds = atol(argv[2]);
    puts("ready");
    fflush(stdout);
    if (strcmp(argv[1], "leader") == 0) {
        pthread_create(&other, NULL, outlive, &microseconds);
        pthread_exit(NULL);
    }
    pthread_create(&other, NULL, work, NULL);
    work_until(microseconds);
    if (strcmp(argv[1], "exec") == 0) {
        execl("/proc/self/exe", "attach_fate", "another program", NULL);
    } else if (strcmp(argv[1], "crash") == 0) {
        *(volatile int *)8 = 1;
    }
    return 7;
}
