/* What a call costs that is recorded at both ends, against the floor: two reads of the clock.
 * Usage: probe_bench [rounds]. Prints ns of CPU per call, the smallest of all rounds. */
#include "tests/agent/inproc/recorder/probe_code.h"

#include <pthread.h>
#include <time.h>

enum { CALLS = 4000000, CHUNKS = 16, DEFAULT_ROUNDS = 7, FUNCTION = 9 };

typedef enum variant {
    VARIANT_EMPTY,   /* a function that returns */
    VARIANT_FLOOR,   /* two rdtsc */
    VARIANT_OFF,     /* probes of a disarmed recorder */
    VARIANT_DROPPED, /* the ring is full */
    VARIANT_DRAINED, /* another thread takes the records away */
    VARIANT_COUNT
} variant;

static const char *const names[] = {"empty call", "two rdtsc", "probes, disarmed",
                                    "probes, ring full", "probes, drained"};

static uint8_t *arena;
static _Atomic int draining;
static _Atomic int stop;

static void *drain_all_the_time(void *argument)
{
    const sj_thread_slot *slot = arena_slot(arena, 0);
    (void)argument;
    while (!atomic_load(&stop)) {
        for (uint32_t i = 0; i < CHUNKS && atomic_load(&draining); i++) {
            uint8_t *bytes = arena + sj_arena_chunk_offset(2, CHUNKS, 0, i);
            const sj_chunk_header *chunk = (const sj_chunk_header *)bytes;
            if (atomic_load(&chunk->sequence) != 0 &&
                atomic_load(&chunk->closed_records) != UINT32_MAX) {
                memset(bytes, 0, SJ_CHUNK_BYTES);
                atomic_fetch_or((_Atomic uint64_t *)&slot->free_chunks, UINT64_C(1) << i);
            }
        }
        usleep(200);
    }
    return NULL;
}

static probe_function make_plain(const uint8_t *code, size_t bytes)
{
    uint8_t *memory =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    memcpy(memory, code, bytes);
    return (probe_function)(uintptr_t)memory;
}

static double time_calls(probe_function function)
{
    struct timespec before;
    struct timespec after;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    for (uint32_t i = 0; i < CALLS; i++) {
        function();
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    return ((double)(after.tv_sec - before.tv_sec) * 1e9 +
            (double)(after.tv_nsec - before.tv_nsec)) /
           CALLS;
}

static void keep_smallest(double *smallest, double value)
{
    if (*smallest == 0 || value < *smallest) {
        *smallest = value;
    }
}

static void measure(const char *directory, uint32_t rounds, double *smallest)
{
    static const uint8_t empty_code[] = {0xc3};
    static const uint8_t floor_code[] = {0x0f, 0x31, 0x0f, 0x31, 0xc3};
    const probe_function empty = make_plain(empty_code, sizeof(empty_code));
    const probe_function two_clocks = make_plain(floor_code, sizeof(floor_code));
    const probe_function probe = make_probe(FUNCTION);
    const sj_link_welcome welcome = make_welcome(2, CHUNKS, SJ_FULL_DROP_NEW);
    pthread_t drain;
    char path[128];
    keep_smallest(&smallest[VARIANT_OFF], time_calls(probe));
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    snprintf(path, sizeof(path), "%s/1.1.arena", directory);
    arena = map_arena_file(path);
    CHECK(arena != NULL && pthread_create(&drain, NULL, drain_all_the_time, NULL) == 0);
    for (uint32_t i = 0; i < rounds; i++) {
        keep_smallest(&smallest[VARIANT_EMPTY], time_calls(empty));
        keep_smallest(&smallest[VARIANT_FLOOR], time_calls(two_clocks));
        keep_smallest(&smallest[VARIANT_DROPPED], time_calls(probe));
        atomic_store(&draining, 1);
        keep_smallest(&smallest[VARIANT_DRAINED], time_calls(probe));
        atomic_store(&draining, 0);
    }
    atomic_store(&stop, 1);
    pthread_join(drain, NULL);
}

int main(int argc, char **argv)
{
    double smallest[VARIANT_COUNT] = {0};
    char directory[] = "probe-bench-XXXXXX";
    char command[64];
    CHECK(mkdtemp(directory) != NULL);
    measure(directory, argc > 1 ? (uint32_t)atoi(argv[1]) : DEFAULT_ROUNDS, smallest);
    for (int i = 0; i < VARIANT_COUNT; i++) {
        printf("%-18s %6.2f ns/call  %.3f x floor\n", names[i], smallest[i],
               smallest[i] / smallest[VARIANT_FLOOR]);
    }
    const sj_thread_slot *slot = arena_slot(arena, 0);
    printf("dropped %llu of %llu events\n", (unsigned long long)atomic_load(&slot->dropped_events),
           2ULL * CALLS * 2 * (unsigned long long)(argc > 1 ? atoi(argv[1]) : DEFAULT_ROUNDS));
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    return system(command);
}
