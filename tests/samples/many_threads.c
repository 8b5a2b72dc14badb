/* THREADS threads run at once. Each calls a function CALLS times; with a third argument, only after
 * the program has read a line. many_threads THREADS CALLS [wait] */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS_MAX = 512 };

static pthread_barrier_t all_live;
static long calls;

__attribute__((noipa)) static long leaf(long number)
{
    return number * 3 + 1;
}

__attribute__((noipa)) static void *work(void *unused)
{
    volatile long sum = 0;
    (void)pthread_barrier_wait(&all_live);
    for (long i = 0; i < calls; i++) {
        sum += leaf(i);
    }
    (void)pthread_barrier_wait(&all_live);
    return unused;
}

int main(int count, char **arguments)
{
    pthread_t threads[THREADS_MAX];
    char line[16];
    const int wanted = count > 2 ? atoi(arguments[1]) : 1;
    calls = count > 2 ? atol(arguments[2]) : 1;
    (void)printf("%ld begun\n", leaf(1));
    (void)fflush(stdout);
    if (count > 3 && fgets(line, sizeof(line), stdin) == NULL) {
        return 2;
    }
    (void)pthread_barrier_init(&all_live, NULL, (unsigned)wanted);
    for (int i = 0; i < wanted && i < THREADS_MAX; i++) {
        (void)pthread_create(&threads[i], NULL, work, NULL);
    }
    for (int i = 0; i < wanted && i < THREADS_MAX; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    (void)puts("finished");
    return 0;
}
