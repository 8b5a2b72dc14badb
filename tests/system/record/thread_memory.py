#!/usr/bin/env python3
"""Memory of threads: what each thread allocates and frees, whichever functions are recorded, equals what the
program counts in a malloc of its own; by thread, by step and by block; what forked children do is not their
parent's; nothing unasked.

thread_memory.py BUILD_FOLDER
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, main

THREADS = 4
SOURCE = r"""
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#define KEPT __attribute__((noipa))
static _Thread_local long counted[4];
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);
KEPT size_t malloc_usable_size(void *block)
{
    const size_t size = block != NULL ? ((size_t *)block)[-1] : 0;
    return block != NULL ? (size & ~(size_t)7) - ((size & 2) != 0 ? 16 : 8) : 0;
}
static void *got(void *block)
{
    if (block != NULL) {
        counted[0]++;
        counted[1] += (long)malloc_usable_size(block);
    }
    return block;
}
static void gave(void *block)
{
    if (block != NULL) {
        counted[2]++;
        counted[3] += (long)malloc_usable_size(block);
    }
}
KEPT void *malloc(size_t bytes) { return got(__libc_malloc(bytes)); }
KEPT void *calloc(size_t n, size_t bytes) { return got(__libc_calloc(n, bytes)); }
KEPT void *memalign(size_t to, size_t bytes) { return got(__libc_memalign(to, bytes)); }
KEPT void *aligned_alloc(size_t to, size_t bytes) { return got(__libc_memalign(to, bytes)); }
KEPT int posix_memalign(void **out, size_t to, size_t bytes)
{
    *out = got(__libc_memalign(to, bytes));
    return *out == NULL ? ENOMEM : 0;
}
KEPT void free(void *block) { gave(block); __libc_free(block); }
KEPT void *realloc(void *block, size_t bytes)
{
    const long held = block != NULL ? (long)malloc_usable_size(block) : 0;
    void *moved = __libc_realloc(block, bytes);
    if (block != NULL && (moved != NULL || bytes == 0)) {
        counted[2]++;
        counted[3] += held;
    }
    return got(moved);
}
static void *volatile held[64];
KEPT void thm_work(int number, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        void *volatile *place = &held[number * 8 + i % 8];
        free(*place);
        *place = i % 5 == 0 ? calloc(3, (size_t)(i % 900)) : malloc((size_t)(i * 31 % 4000));
        if (i % 7 == 0) {
            *place = realloc(*place, (size_t)(i % 2000 + 1));
        }
    }
}
/* The child allocates, too: for itself. */
static void have_child(int number, int by_hand)
{
    const pid_t child = by_hand ? (pid_t)syscall(SYS_fork) : fork();
    if (child == 0) {
        thm_work(number, 5000);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}
static pthread_barrier_t together;
static void *run(void *given)
{
    const int number = *(int *)given;
    char line[200];
    thm_work(number, 60000);
    /* A child that is forked by hand hangs where another thread holds a lock of malloc at that moment. */
    for (int by_hand = 0; by_hand < 2; by_hand++) {
        pthread_barrier_wait(&together);
        if (number == by_hand) {
            have_child(number, by_hand);
        }
    }
    pthread_barrier_wait(&together);
    snprintf(line, sizeof(line), "%ld %ld %ld %ld %ld\n", (long)gettid(), counted[0], counted[1], counted[2], counted[3]);
    (void)!write(1, line, strlen(line));
    return NULL;
}
int main(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    pthread_barrier_init(&together, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, run, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
"""
NAMES = ("malloc_allocations", "malloc_bytes", "malloc_frees", "malloc_freed_bytes")


def record(sojourn, program, options):
    database = sojourn.path("threads.db")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    done, _ = sojourn.record([program], database, options, text=True)
    check(done.returncode == 0, f"{options}: {done.stderr}")
    check_accounts(sojourn, database)
    said = {int(words[0]): [int(word) for word in words[1:]] for words in map(str.split, done.stdout.splitlines())}
    check(len(said) == THREADS, f"{done.stdout}")
    return database, said


def test_counted(sojourn, program, options):
    database, said = record(sojourn, program, options)
    rows = {row["tid"]: row for row in sojourn.sql(database, "SELECT * FROM threads")}
    for tid, counted in said.items():
        told = [rows[tid][name] for name in NAMES]
        check(told == counted, f"{options}, thread {tid}: {told}, counted {counted}")
    steps = sojourn.sql(database, """
        SELECT t.tid, sum(x.allocations) AS allocations, sum(x.allocated_bytes) AS bytes, sum(x.frees) AS frees,
               count(*) AS n, count(x.allocations) AS known
        FROM thread_times AS x JOIN threads AS t ON t.session_id = x.session_id AND t.number = x.thread_number
        GROUP BY t.tid""")
    for row in steps:
        if row["tid"] in said:
            check(row["known"] == row["n"], f"steps without counts: {row}")
            check(row["allocations"] <= said[row["tid"]][0] and row["bytes"] <= said[row["tid"]][1] and
                  row["frees"] <= said[row["tid"]][2], f"steps count more than there was: {row}")
    blocks = sojourn.run(["sql", "--json", "--query", "block_costs", database], capture_output=True, text=True)
    check(blocks.returncode == 0, blocks.stderr)
    return len(steps)


def test_unasked(sojourn, program):
    database, _ = record(sojourn, program, [])
    found = sojourn.sql(database, "SELECT count(malloc_allocations) AS t FROM threads")[0]["t"]
    steps = sojourn.sql(database, "SELECT count(allocations) AS n FROM thread_times")[0]["n"]
    check(found == 0 and steps == 0, f"unasked: {found} threads, {steps} steps")


def test(sojourn, arguments):
    program = sojourn.path("threads")
    with open(program + ".c", "w", encoding="utf-8") as file:
        file.write(SOURCE)
    subprocess.run(["gcc", "-O2", "-g", "-w", "-fno-builtin", "-D_GNU_SOURCE", f"-DTHREADS={THREADS}", "-rdynamic",
                    program + ".c", "-pthread", "-o", program], check=True)
    steps = test_counted(sojourn, program, ["--thread-memory"])
    test_counted(sojourn, program, ["--memory", "thm_work"])
    test_counted(sojourn, program, ["--thread-memory", "--function", "run", "--mode", "profile"])
    test_unasked(sojourn, program)
    print(f"{THREADS} threads, {steps} with steps")


if __name__ == "__main__":
    main(test)
