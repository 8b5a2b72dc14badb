/* Measures what the parts of a probe cost. The functions in probe_variants.S leave out a part or do
 * it in another way; each round calls all of them.
 *
 *   probe_variants [rounds [chunks]]
 *
 * Prints ns of CPU a call: the median, and the range that holds four of five rounds. Another thread
 * clears the `chunks` of 64 KiB. Few chunks stay in the caches, as with a drain that keeps up; many
 * do not. With 0 (the default) the probes reuse one chunk, which no thread clears. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK_BYTES = 65536, HEADER_BYTES = 4096, RECORD_BYTES = 16, CALLS = 300000 };
enum { MOST_CHUNKS = 1024, MOST_ROUNDS = 1000, DEFAULT_ROUNDS = 31 };

/* clang-format off */
#define VARIANTS(row) \
    row(empty) row(two_clocks) row(clock) row(clock_reserve) row(all) row(all_fetch) \
    row(all_fetch_twice) row(all_flags) row(no_clock) row(load_add_store) row(wide_stores) \
    row(reserve_first) row(rdtscp) row(inline) row(inline_unsaved)
/* clang-format on */
#define DECLARE(name) void variant_##name(void);
#define ROW(name) {#name, variant_##name},

VARIANTS(DECLARE)
uint64_t variant_next_chunk(void);

__thread uint64_t variant_cursor __attribute__((tls_model("local-exec")));

static const struct {
    const char *name;
    void (*function)(void);
} variants[] = {VARIANTS(ROW)};

enum { VARIANT_COUNT = sizeof(variants) / sizeof(variants[0]), FLOOR = 1 };

static uint8_t *arena;
static uint32_t chunk_count;
static uint32_t chunk;
static _Atomic int is_full[MOST_CHUNKS];
static _Atomic int stop;

/* Returns the address of the first record in the next chunk. */
uint64_t variant_next_chunk(void)
{
    if (chunk_count != 0) {
        atomic_store(&is_full[chunk], 1);
        chunk = (chunk + 1) % chunk_count;
        while (atomic_load(&is_full[chunk])) {
            usleep(50);
        }
    }
    const uint64_t first = (uint64_t)(uintptr_t)arena + (uint64_t)chunk * CHUNK_BYTES;
    variant_cursor = first + HEADER_BYTES + RECORD_BYTES;
    return first + HEADER_BYTES;
}

static void *clear_chunks(void *argument)
{
    (void)argument;
    for (uint32_t i = 0; !atomic_load(&stop);) {
        if (!atomic_load(&is_full[i])) {
            usleep(100);
            continue;
        }
        uint8_t *bytes = arena + (size_t)i * CHUNK_BYTES;
        const volatile uint64_t *words = (const volatile uint64_t *)(const void *)bytes;
        for (size_t k = 0; k < CHUNK_BYTES / sizeof(*words); k++) {
            (void)words[k];
        }
        memset(bytes, 0, CHUNK_BYTES);
        atomic_store(&is_full[i], 0);
        i = (i + 1) % chunk_count;
    }
    return NULL;
}

static double cpu_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double time_calls(void (*function)(void))
{
    const double before = cpu_ns();
    for (uint32_t i = 0; i < CALLS; i++) {
        function();
    }
    return (cpu_ns() - before) / CALLS;
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static uint32_t read_argument(int argc, char **argv, int place, uint32_t otherwise, uint32_t most)
{
    const uint32_t value = argc > place ? (uint32_t)strtoul(argv[place], NULL, 10) : otherwise;
    return value < most ? value : most;
}

int main(int argc, char **argv)
{
    static double ns[VARIANT_COUNT][MOST_ROUNDS];
    const uint32_t asked = read_argument(argc, argv, 1, DEFAULT_ROUNDS, MOST_ROUNDS);
    const uint32_t rounds = asked != 0 ? asked : 1;
    chunk_count = read_argument(argc, argv, 2, 0, MOST_CHUNKS);
    arena = aligned_alloc(CHUNK_BYTES, (size_t)(chunk_count + 1) * CHUNK_BYTES);
    pthread_t thread;
    if (arena == NULL || pthread_create(&thread, NULL, clear_chunks, NULL) != 0) {
        return 1;
    }
    memset(arena, 0, (size_t)(chunk_count + 1) * CHUNK_BYTES);
    (void)variant_next_chunk();
    for (uint32_t round = 0; round < rounds; round++) {
        for (int i = 0; i < VARIANT_COUNT; i++) {
            ns[i][round] = time_calls(variants[i].function);
        }
    }
    for (int i = 0; i < VARIANT_COUNT; i++) {
        qsort(ns[i], rounds, sizeof(ns[i][0]), compare);
    }
    for (int i = 0; i < VARIANT_COUNT; i++) {
        printf("%-16s %6.2f ns  %5.2f to %5.2f  %.3f x two clocks\n", variants[i].name,
               ns[i][rounds / 2], ns[i][rounds / 10], ns[i][rounds * 9 / 10],
               ns[i][rounds / 2] / ns[FLOOR][rounds / 2]);
    }
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
    free(arena);
    return 0;
}
