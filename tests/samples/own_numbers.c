/* Calls leaf() 1,000 times in each of 8 threads and 500 times in a forked child. With a file as
 * argument it prints "ready", and does that again until the file exists. Then it prints the number
 * of calls. */
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, CALLS = 1000, CALLS_OF_CHILD = 500 };

__attribute__((noinline)) static long leaf(long calls)
{
    __asm__ volatile("");
    return calls + 1;
}

static void *run(void *unused)
{
    long calls = 0;
    for (int i = 0; i < CALLS; i++) {
        calls = leaf(calls);
        if (i % 100 == 0) {
            usleep(1000);
        }
    }
    return unused;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_create(&threads[i], NULL, run, NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
}

int main(int count, char **arguments)
{
    long calls = 0;
    int status = 0;
    if (count > 1) {
        puts("ready");
        (void)fflush(stdout);
    }
    do {
        run_threads();
        calls += THREADS * CALLS;
    } while (count > 1 && access(arguments[1], F_OK) != 0);
    const pid_t child = fork();
    if (child == 0) {
        long own = 0;
        for (int i = 0; i < CALLS_OF_CHILD; i++) {
            own = leaf(own);
        }
        _exit(own == CALLS_OF_CHILD ? 0 : 1);
    }
    (void)waitpid(child, &status, 0);
    printf("%ld\n", calls + CALLS_OF_CHILD);
    return status != 0;
}
