/* Measures how fast the machine's cores run when all of them work. Prints one number: nanoseconds
 * of CPU time per round of a loop that keeps every adder busy, on the slowest core. The loop takes
 * a quarter longer on a core whose other hardware thread is busy. In a virtual machine, this is the
 * only way to notice that. */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { MAX_CORES = 64, ROUNDS = 3000000 };

static double cpu_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double loop_ns(void)
{
    uint64_t a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;
    const double start = cpu_ns();
    for (int i = 0; i < ROUNDS; i++) {
        a++, b++, c++, d++, e++, f++, g++, h++;
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
        __asm__ volatile("" : "+r"(e), "+r"(f), "+r"(g), "+r"(h));
    }
    return (cpu_ns() - start) / ROUNDS;
}

typedef struct core {
    pthread_t thread;
    int number;
    double ns;
} core;

static void *measure(void *context)
{
    core *self = context;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(self->number, &set);
    sched_setaffinity(0, sizeof(set), &set);
    self->ns = loop_ns();
    return NULL;
}

int main(void)
{
    static core cores[MAX_CORES];
    cpu_set_t allowed;
    int count = 0;
    double slowest = 0;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
        perror("core_speed: sched_getaffinity");
        return 1;
    }
    for (int i = 0; i < CPU_SETSIZE && count < MAX_CORES; i++) {
        if (CPU_ISSET(i, &allowed)) {
            cores[count].number = i;
            if (pthread_create(&cores[count].thread, NULL, measure, &cores[count]) != 0) {
                fprintf(stderr, "core_speed: no thread for core %d\n", i);
                return 1;
            }
            count++;
        }
    }
    for (int i = 0; i < count; i++) {
        pthread_join(cores[i].thread, NULL);
        slowest = cores[i].ns > slowest ? cores[i].ns : slowest;
    }
    printf("%.3f\n", slowest);
    return 0;
}
