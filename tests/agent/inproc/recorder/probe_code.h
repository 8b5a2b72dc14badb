/* Test support: makes machine code with probes, and a consumer that counts the records. */
#ifndef SJ_TESTS_AGENT_INPROC_RECORDER_PROBE_CODE_H
#define SJ_TESTS_AGENT_INPROC_RECORDER_PROBE_CODE_H

#include "agent/abi/arena.h"
#include "agent/abi/record.h"
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Ends the child process that runs a test if the condition is false. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

typedef void (*probe_function)(void);

#if defined(__aarch64__)
static const uint8_t return_code[] = {0xc0, 0x03, 0x5f, 0xd6};
#else
static const uint8_t return_code[] = {0xc3};
#endif

/* Runs the test in a child process, because the recorder starts once per process. */
static inline int run_in_child(void (*test)(const char *directory))
{
    char directory[] = "recorder-test-XXXXXX";
    if (mkdtemp(directory) == NULL) {
        return -1;
    }
    const pid_t child = fork();
    if (child == 0) {
        test(directory);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    return system(command) == 0 ? status : -1;
}

/* Makes a function that records an entry and an exit of `function` and returns. With `receiver`, it
 * also records the first word of that argument's object. */
static inline probe_function make_receiver_probe(uint32_t function, uint8_t receiver)
{
    enum { AREA = 16384, COLD = AREA / 2 };
    uint8_t *code =
        mmap(NULL, AREA, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(code != MAP_FAILED);
    sj_code_emitter emitter = {.at = (uint64_t)(uintptr_t)code,
                               .slow_trampoline = (uint64_t)(uintptr_t)code,
                               .counts_calls = sj_recorder_counts_calls()};
    sj_code_emit_trampoline(&emitter, (uint64_t)(uintptr_t)&sj_arch_slow_entry);
    emitter.cold_at = (uint64_t)(uintptr_t)code + COLD;
    sj_code_emit_shared(&emitter);
    const uint64_t start = emitter.at;
    if (receiver != 0) {
        sj_code_emit_receiver_probe(&emitter, function, receiver);
    } else {
        sj_code_emit_probe(&emitter, function);
    }
    sj_code_emit_probe(&emitter, UINT32_C(1) << SJ_RECORD_FUNCTION_BITS | function);
    sj_code_emit_bytes(&emitter, return_code, sizeof(return_code));
    CHECK(emitter.at < (uint64_t)(uintptr_t)code + COLD);
    sj_arch_sync_code((uint64_t)(uintptr_t)code, AREA);
    return (probe_function)(uintptr_t)start;
}

/* Makes a function that records the values of the descriptors, its entry and its exit, and
 * returns. */
static inline probe_function make_values_probe(uint32_t function, uint32_t descriptors)
{
    enum { VALUES_TRAMPOLINE = 32, SHARED = 64 };
    uint8_t *code =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(code != MAP_FAILED);
    const uint64_t start = (uint64_t)(uintptr_t)code;
    sj_code_emitter emitter = {
        .at = start, .slow_trampoline = start, .values_trampoline = start + VALUES_TRAMPOLINE};
    sj_code_emit_trampoline(&emitter, (uint64_t)(uintptr_t)&sj_arch_slow_entry);
    emitter.at = emitter.values_trampoline;
    sj_code_emit_trampoline(&emitter, (uint64_t)(uintptr_t)&sj_arch_values_entry);
    emitter.at = start + SHARED;
    emitter.cold_at = start + 2048;
    sj_code_emit_shared(&emitter);
    const uint64_t code_start = emitter.at;
    sj_code_emit_values(&emitter, function, descriptors);
    sj_code_emit_probe(&emitter, function & SJ_RECORD_FUNCTION_MASK);
    sj_code_emit_probe(&emitter, UINT32_C(1) << SJ_RECORD_FUNCTION_BITS |
                                     (function & SJ_RECORD_FUNCTION_MASK));
    CHECK(sj_arch_is_return(return_code, sizeof(return_code)) &&
          !sj_arch_is_return(return_code, 0));
    sj_code_emit_bytes(&emitter, return_code, sizeof(return_code));
    sj_arch_sync_code(start, 4096);
    return (probe_function)(uintptr_t)code_start;
}

static inline probe_function make_probe(uint32_t function)
{
    return make_receiver_probe(function, 0);
}

static inline sj_link_welcome make_welcome(uint32_t threads, uint32_t chunks, sj_full_policy policy)
{
    return (sj_link_welcome){.max_threads = threads,
                             .chunks_per_thread = chunks,
                             .full_policy = (uint32_t)policy,
                             .wait_ms = 50};
}

/* Numbers of records that a consumer has read, by kind. */
typedef struct tally {
    uint64_t enters;
    uint64_t leaves;
    uint64_t noted_calls;
    uint64_t noted_events;
    uint64_t waited_notes;
    uint64_t marks;
} tally;

/* Maps the arena in the file `path`. Returns NULL if the file cannot be read or mapped. */
static inline uint8_t *map_arena_file(const char *path)
{
    FILE *file = fopen(path, "r+");
    if (file == NULL) {
        return NULL;
    }
    sj_arena_header header;
    const size_t got = fread(&header, sizeof(header), 1, file);
    const uint64_t bytes = sj_arena_bytes(header.max_threads, header.chunks_per_thread);
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    fclose(file);
    return got == 1 && base != MAP_FAILED ? base : NULL;
}

static inline sj_thread_slot *arena_slot(uint8_t *base, uint32_t thread)
{
    return (sj_thread_slot *)(base + SJ_ARENA_HEADER_BYTES) + thread;
}

static inline void tally_record(const sj_record *record, tally *sum)
{
    const uint32_t tag = sj_record_tag(record);
    const uint32_t function = tag & SJ_RECORD_FUNCTION_MASK;
    switch (tag >> SJ_RECORD_FUNCTION_BITS) {
    case SJ_RECORD_ENTER:
        sum->enters++;
        break;
    case SJ_RECORD_LEAVE:
        sum->leaves++;
        break;
    default:
        sum->noted_calls += function == SJ_NOTE_DROPPED_CALLS ? sj_record_stack(record) : 0;
        sum->noted_events += function == SJ_NOTE_DROPPED_EVENTS ? sj_record_stack(record) : 0;
        sum->waited_notes += function == SJ_NOTE_WAITED;
        sum->marks += function == SJ_NOTE_MARK_BEGIN || function == SJ_NOTE_MARK_END;
        break;
    }
}

/* Counts the records of a thread's chunks in use. With `release`, reads only closed and full
 * chunks, then zeroes and frees them. */
static inline void drain_thread(uint8_t *base, uint32_t thread, bool release, tally *sum)
{
    const sj_arena_header *header = (const sj_arena_header *)base;
    for (uint32_t i = 0; i < header->chunks_per_thread; i++) {
        uint8_t *bytes =
            base + sj_arena_chunk_offset(header->max_threads, header->chunks_per_thread, thread, i);
        sj_chunk_header *chunk = (sj_chunk_header *)bytes;
        if (atomic_load(&chunk->sequence) == 0 ||
            (release && atomic_load(&chunk->closed_records) == UINT32_MAX)) {
            continue;
        }
        const sj_record *records = (const sj_record *)(bytes + SJ_CHUNK_HEADER_BYTES);
        uint32_t written = 0;
        for (uint32_t r = 0; r < SJ_CHUNK_RECORDS; r++) {
            written += sj_record_tag(&records[r]) != 0;
        }
        /* A handler has interrupted a probe that has not written its record yet. */
        if (release && written != SJ_CHUNK_RECORDS) {
            continue;
        }
        for (uint32_t r = 0; r < SJ_CHUNK_RECORDS; r++) {
            const sj_record *record = &records[r];
            if (sj_record_tag(record) != 0) {
                tally_record(record, sum);
            }
        }
        if (release) {
            memset(bytes, 0, SJ_CHUNK_BYTES);
            atomic_fetch_or(&arena_slot(base, thread)->free_chunks, UINT64_C(1) << i);
        }
    }
}

/* Counts the records of the discard window, which are in no counter yet. */
static inline void tally_window(uint8_t *base, uint32_t thread, tally *sum)
{
    const sj_arena_header *header = (const sj_arena_header *)base;
    const sj_record *window =
        (const sj_record *)(base + sj_arena_discard_offset(header->max_threads,
                                                           header->chunks_per_thread, thread));
    for (uint32_t i = 0; i < SJ_DISCARD_RECORDS; i++) {
        if (sj_record_tag(&window[i]) != 0) {
            tally_record(&window[i], sum);
        }
    }
}

/* Calls a probe with an object as argument `receiver`, over several chunks, and checks each record.
 * The object's first word comes before the entry, with the same stack pointer. NULL and unaligned
 * pointers give no value. `runtimes`: sj_link_runtime bits of the recording. */
static inline void store_receivers(const char *directory, uint8_t receiver, uint32_t runtimes)
{
    enum { CALLS = 5 * SJ_CHUNK_RECORDS / 3, CHUNKS = 6, NO_OBJECT = 2, FUNCTION = 77 };
    sj_link_welcome welcome = make_welcome(2, CHUNKS, SJ_FULL_DROP_NEW);
    welcome.runtimes = runtimes;
    const uint64_t object[] = {UINT64_C(0x123456789abcdef0), 5};
    const void *objects[] = {object, (const char *)object + 1, NULL};
    char path[128];
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    snprintf(path, sizeof(path), "%s/1.1.arena", directory);
    uint8_t *base = map_arena_file(path);
    CHECK(base != NULL);
    void (*probe)(const void *, const void *) =
        (void (*)(const void *, const void *))make_receiver_probe(FUNCTION, receiver);
    for (int i = 0; i < CALLS; i++) {
        probe(receiver == 1 ? object : NULL, receiver == 2 ? object : NULL);
    }
    for (int i = 1; i <= NO_OBJECT; i++) {
        probe(receiver == 1 ? objects[i] : object, receiver == 2 ? objects[i] : object);
    }
    uint32_t counts[4] = {0};
    uint64_t stack = 0;
    for (uint32_t chunk = 0; chunk < CHUNKS; chunk++) {
        const sj_record *records =
            (const sj_record *)(base + sj_arena_chunk_offset(2, CHUNKS, 0, chunk) +
                                SJ_CHUNK_HEADER_BYTES);
        for (uint32_t i = 0; i < SJ_CHUNK_RECORDS && sj_record_tag(&records[i]) != 0; i++) {
            const uint32_t tag = sj_record_tag(&records[i]);
            CHECK((tag & SJ_RECORD_FUNCTION_MASK) == FUNCTION);
            counts[tag >> SJ_RECORD_FUNCTION_BITS]++;
            if (tag >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_VALUE) {
                CHECK(sj_record_value(&records[i]) == object[0]);
                CHECK(stack == 0 || sj_record_value_stack(&records[i]) == (uint32_t)stack);
            } else {
                stack = sj_record_stack(&records[i]);
            }
        }
    }
    CHECK(counts[SJ_RECORD_VALUE] == CALLS);
    CHECK(counts[SJ_RECORD_ENTER] == CALLS + NO_OBJECT);
    CHECK(counts[SJ_RECORD_LEAVE] == CALLS + NO_OBJECT);
}

/* Calls a probe that records a text, a real number and a whole number, over several chunks, and
 * checks each record. SHIFT other whole arguments come first. `reads`: true if the recorder can
 * read texts here. */
static inline void store_values(const char *directory, bool reads)
{
    enum { CALLS = SJ_CHUNK_RECORDS / 3, CHUNKS = 6, FUNCTION = 78, SHIFT = 2 };
    static const char text[] = "twelve bytes";
    const uint8_t descriptors[] = {sj_value_descriptor(1, SJ_VALUE_STRING),
                                   sj_value_descriptor(2, SJ_VALUE_DOUBLE),
                                   sj_value_descriptor(2, SJ_VALUE_ULONG)};
    const sj_link_welcome welcome = make_welcome(2, CHUNKS, SJ_FULL_DROP_NEW);
    char path[128];
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    snprintf(path, sizeof(path), "%s/1.1.arena", directory);
    uint8_t *base = map_arena_file(path);
    CHECK(base != NULL);
    void (*probe)(long, long, const char *, long, double, double) =
        (void (*)(long, long, const char *, long, double, double))make_values_probe(
            (uint32_t)SHIFT << SJ_VALUE_SHIFT_BIT | FUNCTION,
            descriptors[0] | (uint32_t)descriptors[1] << 8 | (uint32_t)descriptors[2] << 16);
    for (int i = 0; i < CALLS; i++) {
        probe(1, 2, text, 0x123456789, 3.5, 4.5);
    }
    const double real = 4.5;
    uint64_t expected[5] = {reads ? sizeof(text) - 1 : (uint64_t)SJ_VALUE_UNREADABLE << 8};
    size_t count = 1;
    if (reads) {
        memcpy(&expected[1], text, sizeof(text) - 1);
        count += 2;
    }
    memcpy(&expected[count++], &real, sizeof(real));
    expected[count++] = 0x123456789;
    size_t place = 0;
    uint32_t stack = 0;
    uint32_t calls = 0;
    for (uint32_t chunk = 0; chunk < CHUNKS; chunk++) {
        const sj_record *records =
            (const sj_record *)(base + sj_arena_chunk_offset(2, CHUNKS, 0, chunk) +
                                SJ_CHUNK_HEADER_BYTES);
        for (uint32_t i = 0; i < SJ_CHUNK_RECORDS && sj_record_tag(&records[i]) != 0; i++) {
            const uint32_t tag = sj_record_tag(&records[i]);
            CHECK((tag & SJ_RECORD_FUNCTION_MASK) == FUNCTION);
            if (tag >> SJ_RECORD_FUNCTION_BITS != SJ_RECORD_VALUE) {
                CHECK(place == count || place == 0);
                CHECK((sj_record_stack(&records[i]) & SJ_RECORD_VALUE_STACK_MASK) == stack);
                calls += tag >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_ENTER && place == count;
                place = 0;
                continue;
            }
            const uint32_t word = sj_record_value_stack(&records[i]);
            const bool is_text = reads && (place == 1 || place == 2);
            CHECK(place < count && sj_record_value(&records[i]) == expected[place]);
            CHECK(sj_record_part_of(&records[i]) == (is_text ? SJ_PART_TEXT : SJ_PART_VALUE));
            CHECK(records[i].bytes[11] == descriptors[place + 2 < count ? 0 : place + 3 - count]);
            stack = word & SJ_RECORD_VALUE_STACK_MASK;
            place++;
        }
    }
    CHECK(calls == CALLS);
}

#endif
