/* The program that the browser tests record. It has two threads, recursion, one slow call among
 * quick calls, and deep stacks.
 *
 *   recorded_program ROUNDS EXTRA   EXTRA is additional work of check_line
 *   recorded_program deep LEVELS    makes longer and shorter calls, and exits LEVELS calls deep
 *   recorded_program blocked        calls two functions 300 times each; their last calls block
 *   recorded_program crash          reads freed memory, then dies of a signal
 *   recorded_program steady         works once for each line of its input, then ends */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void spin(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        sink = sink * 31 + i;
    }
}

__attribute__((noinline)) static unsigned hash_word(unsigned word)
{
    spin(20);
    return word * 2654435761u;
}

__attribute__((noinline)) static unsigned check_line(unsigned extra)
{
    spin(60 + extra);
    return hash_word(extra);
}

__attribute__((noinline)) int parse_line(int number, unsigned extra)
{
    unsigned sum = 0;
    for (int i = 0; i < 3; i++) {
        sum += hash_word((unsigned)number);
    }
    if (number == 77) {
        for (int i = 0; i < 400; i++) {
            sum += check_line(extra + 200);
        }
    }
    return (int)((sum + check_line(extra)) & 0xff);
}

__attribute__((noinline)) static int load_file(int rounds, unsigned extra)
{
    int sum = 0;
    for (int i = 0; i < rounds; i++) {
        sum += parse_line(i, extra);
    }
    return sum;
}

__attribute__((noinline)) static unsigned fibonacci(unsigned n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__attribute__((noinline)) static void *compute(void *rounds)
{
    for (int i = 0; i < *(int *)rounds; i++) {
        sink += fibonacci(6);
        spin(50);
    }
    return NULL;
}

__attribute__((noinline)) static unsigned long serve(unsigned own, unsigned below)
{
    for (unsigned i = 0; i < own; i++) {
        sink = sink * 31 + i;
    }
    spin(below);
    return (sink >> 5) * 31 + own + below;
}

__attribute__((noinline)) static unsigned descend(unsigned levels)
{
    if (levels == 0) {
        for (unsigned i = 0; i < 4000000; i++) {
            sink = sink * 31 + i;
        }
        exit(0);
    }
    return descend(levels - 1) + 1;
}

__attribute__((noinline)) static char *make_block(void)
{
    char *block = malloc(40);
    return block != NULL ? memset(block, 7, 40) : NULL;
}

__attribute__((noinline)) static void drop_block(char *block)
{
    free(block);
}

__attribute__((noinline)) static int use_block(volatile const char *block)
{
    return block[8];
}

__attribute__((noinline)) static void fall(void)
{
    char *block = make_block();
    drop_block(block);
    sink += (unsigned long)use_block(block);
    raise(SIGABRT);
}

enum { QUICK_CALLS = 299, BLOCKED_NS = 300000000 };

static int ends[2]; /* a pipe: read end, write end */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) static int receive_byte(int from)
{
    char byte = 0;
    return read(from, &byte, 1) == 1 ? byte : -1;
}

__attribute__((noinline)) static void run_turn(void)
{
    pthread_mutex_lock(&turn);
    sink++;
    pthread_mutex_unlock(&turn);
}

/* Makes the last calls of receive_byte and run_turn wait: sends the byte late while it holds the
 * lock, and releases the lock later. */
static void *hold_up(void *unused)
{
    const struct timespec while_it_waits = {.tv_nsec = BLOCKED_NS};
    nanosleep(&while_it_waits, NULL);
    pthread_mutex_lock(&turn);
    sink += write(ends[1], "w", 1) == 1;
    nanosleep(&while_it_waits, NULL);
    pthread_mutex_unlock(&turn);
    return unused;
}

static void block(void)
{
    char bytes[QUICK_CALLS] = {0};
    pthread_t other;
    if (pipe(ends) != 0 || write(ends[1], bytes, QUICK_CALLS) != QUICK_CALLS) {
        exit(1);
    }
    for (int i = 0; i < QUICK_CALLS; i++) {
        sink += (unsigned long)receive_byte(ends[0]);
        run_turn();
    }
    pthread_create(&other, NULL, hold_up, NULL);
    sink += (unsigned long)receive_byte(ends[0]);
    run_turn();
    pthread_join(other, NULL);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "blocked") == 0) {
        block();
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "crash") == 0) {
        load_file(20, 0);
        fall();
    }
    if (argc > 2 && strcmp(argv[1], "deep") == 0) {
        for (int i = 0; i < 6; i++) {
            sink += serve(0, 1000000);
        }
        sink += serve(500000, 0);
        sink = descend((unsigned)atoi(argv[2]));
    }
    if (argc > 1 && strcmp(argv[1], "steady") == 0) {
        for (char line[16]; fgets(line, sizeof(line), stdin) != NULL;) {
            load_file(40, 0);
        }
        return 0;
    }
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    const unsigned extra = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
    pthread_t worker;
    /* the new thread inherits the name, so it has the name at its first call */
    pthread_setname_np(pthread_self(), "worker");
    pthread_create(&worker, NULL, compute, &rounds);
    pthread_setname_np(pthread_self(), "recorded_progra");
    printf("%d\n", load_file(rounds, extra));
    pthread_join(worker, NULL);
    return 0;
}
