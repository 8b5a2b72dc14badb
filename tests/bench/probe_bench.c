/* Measures what a call costs that is recorded at both ends, and compares it with two reads of the
 * clock. On x86-64 it also measures a call that is only counted (--clock adaptive), alone and as a
 * tail call. Usage: probe_bench [rounds]. Prints ns of CPU per call, the smallest of all rounds. */
#include "tests/agent/inproc/recorder/probe_code.h"

#include <pthread.h>
#include <time.h>

enum { CALLS = 500000, CHUNKS = 16, DEFAULT_ROUNDS = 50, FUNCTION = 9, CALLER = 10 };

typedef enum variant {
    VARIANT_EMPTY,   /* a function that returns */
    VARIANT_FLOOR,   /* two rdtsc */
    VARIANT_OFF,     /* probes of a disarmed recorder */
    VARIANT_DROPPED, /* the ring is full */
    VARIANT_DRAINED, /* another thread takes the records away */
    VARIANT_COUNTED_DROPPED,
    VARIANT_COUNTED_DRAINED,
    VARIANT_COUNTED_TAIL_CALLS, /* drained; two calls */
    VARIANT_COUNT
} variant;

static const char *const names[] = {
    "empty call",      "two rdtsc",          "probes, disarmed", "probes, ring full",
    "probes, drained", "counted, ring full", "counted, drained", "tail calls, counted, drained"};

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

/* A function whose calls are counted, and a function that ends with a tail call to it. */
typedef struct counted_functions {
    probe_function leaf;
    probe_function caller;
} counted_functions;

static counted_functions make_counted(void)
{
    enum { AREA = 8 * 4096, COLD = 4 * 4096, HEAD = AREA - 1024, HEAD_BYTES = 5 };
    static const uint8_t ret[] = {0xc3};
    static const uint8_t original[HEAD_BYTES] = {0xc3, 0x90, 0x90, 0x90, 0x90};
    uint8_t patched[HEAD_BYTES];
    bool too_far;
    uint8_t *area =
        mmap(NULL, AREA, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(area != MAP_FAILED);
    const uint64_t start = (uint64_t)(uintptr_t)area;
    sj_code_emitter emitter = {
        .at = start, .slow_trampoline = start, .cold_at = start + COLD, .counts_calls = true};
    sj_code_emit_trampoline(&emitter, (uint64_t)(uintptr_t)&sj_arch_slow_entry);
    sj_code_emit_shared(&emitter);
    emitter.frees_flags = true; /* as at most entries and exits */
    const uint64_t leaf = emitter.at;
    sj_code_emit_probe(&emitter, FUNCTION);
    sj_code_emit_probe(&emitter, sj_record_make_tag(SJ_RECORD_LEAVE, FUNCTION));
    sj_code_emit_bytes(&emitter, ret, sizeof(ret));
    sj_tail_call_entry entry = {
        .enter_tag = FUNCTION, .entry = start + HEAD, .start = start + HEAD, .stub = leaf};
    CHECK(sj_arch_patch_bytes(SJ_ARCH_JUMP_PATCH, entry.entry, leaf, original, HEAD_BYTES, patched,
                              &too_far));
    memcpy(area + HEAD, patched, HEAD_BYTES);
    memcpy(entry.patch, patched, sizeof(entry.patch));
    const uint64_t tail_entry = emitter.at;
    sj_code_emit_tail_call_entry(&emitter, &entry);
    const uint64_t caller = emitter.at;
    sj_code_emit_probe(&emitter, CALLER);
    sj_code_emit_tail_call_exit(&emitter, sj_record_make_tag(SJ_RECORD_LEAVE, CALLER), tail_entry);
    CHECK(emitter.at < start + COLD && emitter.cold_at < start + HEAD && !emitter.too_far);
    return (counted_functions){(probe_function)(uintptr_t)leaf, (probe_function)(uintptr_t)caller};
}

static void start_recorder(const char *directory, uint32_t runtimes)
{
    sj_link_welcome welcome = make_welcome(2, CHUNKS, SJ_FULL_DROP_NEW);
    char path[128];
    welcome.runtimes = runtimes;
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    snprintf(path, sizeof(path), "%s/1.1.arena", directory);
    arena = map_arena_file(path);
    CHECK(arena != NULL);
}

static void measure_timed(const char *directory, uint32_t rounds, double *smallest)
{
    static const uint8_t empty_code[] = {0xc3};
    static const uint8_t floor_code[] = {0x0f, 0x31, 0x0f, 0x31, 0xc3};
    const probe_function empty = make_plain(empty_code, sizeof(empty_code));
    const probe_function two_clocks = make_plain(floor_code, sizeof(floor_code));
    const probe_function idle = make_probe(FUNCTION);
    pthread_t drain;
    for (uint32_t i = 0; i < rounds; i++) {
        keep_smallest(&smallest[VARIANT_OFF], time_calls(idle));
    }
    start_recorder(directory, 0);
    const probe_function probe = make_probe(FUNCTION); /* its mask lies in the fork page */
    CHECK(pthread_create(&drain, NULL, drain_all_the_time, NULL) == 0);
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

static void measure_counted(const char *directory, uint32_t rounds, double *smallest)
{
    pthread_t drain;
    start_recorder(directory, SJ_LINK_RUNTIME_COUNTING);
    uint8_t *counted = arena + sj_arena_counted_offset(2, CHUNKS);
    counted[FUNCTION] = 1;
    counted[CALLER] = 1;
    const counted_functions made = make_counted();
    CHECK(pthread_create(&drain, NULL, drain_all_the_time, NULL) == 0);
    for (uint32_t i = 0; i < rounds; i++) {
        keep_smallest(&smallest[VARIANT_COUNTED_DROPPED], time_calls(made.leaf));
        atomic_store(&draining, 1);
        keep_smallest(&smallest[VARIANT_COUNTED_DRAINED], time_calls(made.leaf));
        keep_smallest(&smallest[VARIANT_COUNTED_TAIL_CALLS], time_calls(made.caller));
        atomic_store(&draining, 0);
    }
    atomic_store(&stop, 1);
    pthread_join(drain, NULL);
}

/* Measures in a child process, because a recorder can start only once in a process. */
static void in_child(void (*measure)(const char *, uint32_t, double *), uint32_t rounds,
                     double *smallest)
{
    char directory[] = "probe-bench-XXXXXX";
    char command[64];
    int status = -1;
    CHECK(mkdtemp(directory) != NULL);
    const pid_t child = fork();
    if (child == 0) {
        measure(directory, rounds, smallest);
        _exit(0);
    }
    waitpid(child, &status, 0);
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    CHECK(system(command) == 0 && status == 0);
}

int main(int argc, char **argv)
{
    const uint32_t rounds = argc > 1 ? (uint32_t)atoi(argv[1]) : DEFAULT_ROUNDS;
    double *smallest = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(smallest != MAP_FAILED);
    in_child(measure_timed, rounds, smallest);
    in_child(measure_counted, rounds, smallest);
    for (int i = 0; i < VARIANT_COUNT; i++) {
        printf("%-29s %6.2f ns/call  %.3f x floor\n", names[i], smallest[i],
               smallest[i] / smallest[VARIANT_FLOOR]);
    }
    return 0;
}
