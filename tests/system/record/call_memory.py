#!/usr/bin/env python3
"""Memory of calls: what each call allocates and frees equals what the program counts of its own, by
malloc_usable_size: all functions of malloc's family, failing ones, mappings, operators of C++, the C
library's own calls, threads, recursion; with the C library's allocator, with one that the program
defines and with jemalloc; in processes that are started and attached to.

call_memory.py BUILD_FOLDER
"""
import ctypes.util
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import attach_until
from sojourn_testing import check, check_accounts, main

THREADS, ROUNDS = 3, 40
COMMON = r"""
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noipa))
#endif
typedef struct tally { long allocations, allocated, frees, freed; } tally;
static _Thread_local tally all;
static void got(void *block)
{
    if (block != NULL) {
        all.allocations++;
        all.allocated += (long)malloc_usable_size(block);
    }
}
static void gave(void *block)
{
    if (block != NULL) {
        all.frees++;
        all.freed += (long)malloc_usable_size(block);
    }
}
#ifdef OWN_MALLOC
/* Every call of the program and its libraries is counted, in front of the C library's. */
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
KEPT void *malloc(size_t bytes) { void *block = __libc_malloc(bytes); got(block); return block; }
KEPT void *calloc(size_t n, size_t bytes) { void *block = __libc_calloc(n, bytes); got(block); return block; }
KEPT void *memalign(size_t to, size_t bytes) { void *block = __libc_memalign(to, bytes); got(block); return block; }
KEPT void *aligned_alloc(size_t to, size_t bytes) { void *block = __libc_memalign(to, bytes); got(block); return block; }
KEPT int posix_memalign(void **out, size_t to, size_t bytes)
{
    *out = __libc_memalign(to, bytes);
    got(*out);
    return *out == NULL ? ENOMEM : 0;
}
KEPT void free(void *block) { gave(block); __libc_free(block); }
KEPT void *realloc(void *block, size_t bytes)
{
    const long held = block != NULL ? (long)malloc_usable_size(block) : 0;
    void *moved = __libc_realloc(block, bytes);
    if (block != NULL && (moved != NULL || bytes == 0)) {
        all.frees++;
        all.freed += held;
    }
    got(moved);
    return moved;
}
#define COUNTED(block) (block)
#define COUNTED_FREE(block) free(block)
#define COUNTED_REALLOC(block, bytes) realloc(block, bytes)
#else
static void *counted(void *block) { got(block); return block; }
static void counted_free(void *block) { gave(block); free(block); }
static void *counted_realloc(void *block, size_t bytes)
{
    const long held = block != NULL ? (long)malloc_usable_size(block) : 0;
    void *moved = realloc(block, bytes);
    if (block != NULL && (moved != NULL || bytes == 0)) {
        all.frees++;
        all.freed += held;
    }
    got(moved);
    return moved;
}
#define COUNTED(block) counted(block)
#define COUNTED_FREE(block) counted_free(block)
#define COUNTED_REALLOC(block, bytes) counted_realloc(block, bytes)
#endif
static _Thread_local uint64_t seed;
static uint32_t next(uint32_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}
static void *volatile keep;
extern void mem_objects(unsigned round);
enum { HELD = 8 };
static _Thread_local void *held[HELD];
static void *one_more(void)
{
    void *block = NULL;
    const size_t bytes = next(20) == 0 ? 200000 + next(100000) : next(5) == 0 ? next(5000) : next(200);
    switch (next(8)) {
    case 0:
        return COUNTED(calloc(next(10), bytes / 8));
    case 1:
        return COUNTED(aligned_alloc(64, 64 + bytes / 64 * 64));
    case 2:
        return COUNTED(posix_memalign(&block, 4096, bytes) == 0 ? block : NULL);
    case 3:
        return COUNTED(memalign(32, bytes));
    case 4:
        return COUNTED_REALLOC(NULL, bytes);
    case 5:
        return COUNTED(strdup("a text that the C library copies"));
    case 6:
        keep = COUNTED(malloc((size_t)PTRDIFF_MAX - next(100))); /* fails */
        return NULL;
    default:
        return COUNTED(malloc(bytes));
    }
}
KEPT void mem_change(int steps)
{
    for (int i = 0; i < steps; i++) {
        void **place = &held[next(HELD)];
        if (*place == NULL) {
            *place = one_more();
        } else if (next(3) == 0) {
            *place = COUNTED_REALLOC(*place, next(4) == 0 ? 0 : next(3000));
        } else {
            COUNTED_FREE(*place);
            *place = NULL;
        }
    }
    COUNTED_FREE(NULL);
}
KEPT int mem_again(int depth)
{
    mem_change(3);
    const int below = depth > 0 ? mem_again(depth - 1) : 0;
    mem_change(2);
    return below + 1;
}
KEPT void mem_numbered(long number)
{
    mem_change((int)(number % 5));
    keep = &number; /* no jump to it */
}
KEPT void mem_nothing(void) { keep = held; }
#define MEASURED(call)                                                                                  \
    do {                                                                                                \
        const tally before = all;                                                                       \
        call;                                                                                           \
        const tally after = all;                                                                        \
        fprintf(out, "%s %ld %ld %ld %ld\n", #call, after.allocations - before.allocations,             \
                after.allocated - before.allocated, after.frees - before.frees, after.freed - before.freed); \
    } while (0)
static void *run(void *given)
{
    const int number = *(int *)given;
    char name[64];
    snprintf(name, sizeof(name), "%s.%d", getenv("TALLY"), number);
    FILE *out = fopen(name, "w");
    fprintf(out, "%ld\n", (long)gettid());
    seed = (uint64_t)number + 7;
    for (int round = 0; round < ROUNDS; round++) {
        MEASURED(mem_change(30));
        MEASURED((void)mem_again(3));
        MEASURED(mem_nothing());
#ifdef OBJECTS
        MEASURED(mem_objects((unsigned)round));
#endif
    }
    fclose(out);
    return NULL;
}
"""
MAIN = r"""
int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    if (argc > 1) { /* runs until there is a file */
        FILE *out = fopen(getenv("TALLY"), "w");
        seed = 5;
        for (long number = 0; access(argv[1], F_OK) != 0; number++) {
            MEASURED(mem_numbered(number));
        }
        return fclose(out);
    }
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
OBJECTS = r"""
#include <new>
#include <string>
#include <vector>
struct alignas(128) wide { char bytes[300]; };
extern "C" void *volatile keep_object;
void *volatile keep_object;
extern "C" __attribute__((noipa)) void mem_objects(unsigned round)
{
    std::vector<std::string> texts;
    for (unsigned i = 0; i < 20 + round; i++) {
        texts.push_back(std::string(i * 7 % 100, 'x'));
    }
    wide *one = new wide;
    keep_object = one;
    delete one;
    int *many = new int[round * 31 + 1];
    keep_object = many;
    delete[] many;
    long *number = new (std::nothrow) long;
    keep_object = number;
    delete number;
    keep_object = &texts;
}
"""


def build(sojourn, name, flags):
    program = sojourn.path(name)
    common = ["-O2", "-g", "-w", "-fno-builtin"]
    with open(program + ".c", "w", encoding="utf-8") as file:
        file.write(COMMON + MAIN)
    with open(program + ".cc", "w", encoding="utf-8") as file:
        file.write(OBJECTS)
    subprocess.run(["gcc", *common, "-D_GNU_SOURCE", f"-DTHREADS={THREADS}", f"-DROUNDS={ROUNDS}", *flags, "-c",
                    program + ".c", "-o", program + ".o"], check=True)
    more = ["-std=c++17", "-x", "c++", program + ".cc", "-x", "none", "-lstdc++"] if "-DOBJECTS" in flags else []
    subprocess.run(["gcc", *common, "-rdynamic", program + ".o", *more, "-pthread", "-o", program], check=True)
    return program


def compare(sojourn, database, tally):
    """Each thread's calls, in order, with what it has written."""
    compared = 0
    for number in range(THREADS):
        with open(f"{tally}.{number}", encoding="utf-8") as file:
            tid, *lines = file.read().splitlines()
        rows = sojourn.sql(database, f"""
            SELECT f.name, c.allocations, c.allocated_bytes, c.frees, c.freed_bytes, c.net_bytes,
                   c.allocated_self_bytes, k.is_nested, coalesce(a.name GLOB 'mem_*', 0) AS is_below
            FROM calls AS c JOIN functions AS f USING (function_id) JOIN threads AS t USING (thread_id)
            LEFT JOIN functions AS a ON a.function_id = c.caller_function_id
            LEFT JOIN call_costs AS k ON k.session_id = c.session_id AND k.call_id = c.call_id
            WHERE f.name GLOB 'mem_*' AND t.tid = {tid} ORDER BY c.start_ns""")
        outer = [row for row in rows if not row["is_below"]]
        check(len(outer) == len(lines), f"{len(outer)} calls recorded, {len(lines)} counted")
        for row, line in zip(outer, lines):
            *call, allocations, allocated, frees, freed = line.split(" ")
            recorded = [row[name] for name in ("allocations", "allocated_bytes", "frees", "freed_bytes")]
            counted = [int(value) for value in (allocations, allocated, frees, freed)]
            check(recorded == counted, f"thread {number}, {line}: recorded {recorded}")
            check(row["net_bytes"] == counted[1] - counted[3], f"{row}")
            compared += 1
        # What calls had of their own is, added up, what the outermost had.
        check(sum(row["allocated_self_bytes"] for row in rows) == sum(row["allocated_bytes"] for row in outer), "self")
    return compared


def recorded(sojourn, program, environment=None):
    database, tally = sojourn.path("memory.db"), sojourn.path("tally")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    done, _ = sojourn.record([program], database, ["--memory", "mem_*"], text=True,
                             env={**os.environ, "TALLY": tally, **(environment or {})})
    check(done.returncode == 0, f"{program} ended with {done.returncode}: {done.stderr}")
    check_accounts(sojourn, database)
    return database, tally


def test_sums(sojourn, database):
    """Of functions that call themselves the outermost calls count, and of paths each call once."""
    sums = {row["name"]: row for row in sojourn.sql(database, """
        SELECT f.name, k.* FROM function_costs AS k JOIN functions AS f USING (function_id)""")}
    for row in sojourn.sql(database, """
            SELECT f.name, sum(iif(k.is_nested, 0, k.allocations)) AS allocations, sum(k.frees_self) AS frees_self,
                   sum(iif(k.is_nested, 0, k.allocated_bytes - k.freed_bytes)) AS net_bytes, count(*) AS calls,
                   count(k.cpu_ns) AS cpu_calls
            FROM call_costs AS k JOIN functions AS f USING (function_id) GROUP BY f.name"""):
        of = sums[row["name"]]
        check(all(of[name] == row[name] for name in ("calls", "allocations", "frees_self", "net_bytes")), f"{of}, {row}")
        check(row["cpu_calls"] == 0 and of["cpu_ns"] is None, f"CPU time that nobody asked for: {row}")


def test_attached(sojourn, program):
    """A process that runs is joined, and left: it goes on."""
    database, tally, stop = sojourn.path("attached.db"), sojourn.path("attached"), sojourn.path("stop")
    calls = """SELECT cast(a.value AS INTEGER) AS number, c.allocations, c.allocated_bytes, c.frees, c.freed_bytes
        FROM calls AS c JOIN functions AS f USING (function_id) JOIN arguments AS a ON a.call_id = c.call_id
        WHERE f.name = 'mem_numbered' AND c.allocations IS NOT NULL"""
    with subprocess.Popen([program, stop], env={**sojourn.environment, "TALLY": tally}) as child:
        attach_until(sojourn, child.pid, database, lambda _: len(sojourn.sql(database, calls)) > 20,
                     ["--memory", "mem_*", "--value", "mem_numbered(number:long)"])
        with open(stop, "w", encoding="utf-8"):
            pass
        check(child.wait() == 0, f"the program ended with {child.returncode}")
    with open(tally, encoding="utf-8") as file:
        counted = [[int(value) for value in line.split(" ")[1:]] for line in file]
    rows = sojourn.sql(database, calls)
    for row in rows:
        recorded = [row[name] for name in ("allocations", "allocated_bytes", "frees", "freed_bytes")]
        check(recorded == counted[row["number"]], f"{row}, counted {counted[row['number']]}")
    return len(rows)


def test(sojourn, arguments):
    programs = {"plain": [], "own": ["-DOWN_MALLOC"], "objects": ["-DOWN_MALLOC", "-DOBJECTS"]}
    for name, flags in programs.items():
        database, tally = recorded(sojourn, build(sojourn, name, flags))
        print(f"{name}: {compare(sojourn, database, tally)} calls as the program counts")
        test_sums(sojourn, database)
    jemalloc = ctypes.util.find_library("jemalloc")
    check(jemalloc, "no jemalloc")
    database, tally = recorded(sojourn, sojourn.path("plain"), {"LD_PRELOAD": jemalloc})
    print(f"jemalloc: {compare(sojourn, database, tally)} calls as the program counts")
    print(f"attached: {test_attached(sojourn, sojourn.path('plain'))} calls as the program counts")


if __name__ == "__main__":
    main(test)
