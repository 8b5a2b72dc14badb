/* A program whose policy changes while it works. Three threads and a forked child call a chain of
 * functions: policy_round -> policy_outer -> policy_middle -> policy_inner. One thread calls
 * policy_wait, which takes 20 ms. Each actor counts its own calls. For each byte of input, the
 * program prints how many turns each actor has done at least. At the end of its input it prints its
 * counts and ends. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 2, ACTORS = WORKERS + 2, ROUNDS_AT_ONCE = 20, FUNCTIONS = 5 };

typedef struct shared_state {
    atomic_bool stop;
    atomic_ulong calls[FUNCTIONS]; /* round, outer, middle, inner, wait */
    atomic_ulong mistakes;
    atomic_ulong turns[ACTORS]; /* workers, the thread that waits, the child */
} shared_state;

static shared_state *shared;

static void pause_ns(long ns)
{
    const struct timespec pause = {.tv_nsec = ns};
    nanosleep(&pause, NULL);
}

__attribute__((noinline)) unsigned long policy_inner(unsigned long value)
{
    atomic_fetch_add(&shared->calls[3], 1);
    return value * 2654435761u + 1;
}

__attribute__((noinline)) unsigned long policy_middle(unsigned long value)
{
    atomic_fetch_add(&shared->calls[2], 1);
    return policy_inner(value) ^ policy_inner(value + 1);
}

__attribute__((noinline)) unsigned long policy_outer(unsigned long value)
{
    atomic_fetch_add(&shared->calls[1], 1);
    return policy_middle(value) + 1;
}

__attribute__((noinline)) unsigned long policy_round(unsigned long value)
{
    atomic_fetch_add(&shared->calls[0], 1);
    unsigned long sum = 0;
    for (unsigned long i = 0; i < 3; i++) {
        sum += policy_outer(value + i);
    }
    return sum;
}

__attribute__((noinline)) unsigned long policy_wait(void)
{
    atomic_fetch_add(&shared->calls[4], 1);
    pause_ns(20 * 1000 * 1000);
    return policy_outer(7);
}

static void *work(void *turns)
{
    const unsigned long expected = policy_round(5);
    while (!atomic_load(&shared->stop)) {
        for (int i = 0; i < ROUNDS_AT_ONCE; i++) {
            if (policy_round(5) != expected) {
                atomic_fetch_add(&shared->mistakes, 1);
            }
        }
        pause_ns(1000 * 1000);
        atomic_fetch_add((atomic_ulong *)turns, 1);
    }
    return NULL;
}

static void *wait_for_long(void *turns)
{
    while (!atomic_load(&shared->stop)) {
        (void)policy_wait();
        atomic_fetch_add((atomic_ulong *)turns, 1);
    }
    return NULL;
}

static void print_turns(void)
{
    unsigned long least = atomic_load(&shared->turns[0]);
    for (int i = 1; i < ACTORS; i++) {
        const unsigned long turns = atomic_load(&shared->turns[i]);
        least = turns < least ? turns : least;
    }
    printf("%lu\n", least);
    fflush(stdout);
}

int main(void)
{
    static const char *const names[] = {"policy_round", "policy_outer", "policy_middle",
                                        "policy_inner", "policy_wait"};
    pthread_t threads[WORKERS + 1];
    char byte;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        return 1;
    }
    const pid_t child = fork();
    if (child == 0) {
        (void)work(&shared->turns[WORKERS + 1]);
        _exit(0);
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_create(&threads[i], NULL, work, &shared->turns[i]);
    }
    pthread_create(&threads[WORKERS], NULL, wait_for_long, &shared->turns[WORKERS]);
    puts("ready");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0) {
        print_turns();
    }
    atomic_store(&shared->stop, true);
    for (int i = 0; i < WORKERS + 1; i++) {
        pthread_join(threads[i], NULL);
    }
    waitpid(child, NULL, 0);
    for (int i = 0; i < FUNCTIONS; i++) {
        printf("%s %lu\n", names[i], atomic_load(&shared->calls[i]));
    }
    printf("mistakes %lu\n", atomic_load(&shared->mistakes));
    return atomic_load(&shared->mistakes) == 0 ? 0 : 1;
}
