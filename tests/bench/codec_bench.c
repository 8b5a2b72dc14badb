/* Measures size and speed of the block codec.
 *
 *   codec_bench [--events N] [--block N] [--step N] [--dither N] [FILE...]
 *
 * FILE holds records of one thread in the format of agent/abi/record.h, 16 bytes each. Without a
 * file, the bench simulates a deterministic program with a random call grammar. Each function has a
 * few bodies, which are chosen with a bias. So structure repeats but does not loop. --dither adds
 * uniform noise of 0..N-1 ticks to every time, like a clock with a finer step. */
#define _POSIX_C_SOURCE 200809L
#include "proto/block/block.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/abi/record.h"

enum { MAX_DEPTH = 1 << 20, PASSES = 5 };

typedef struct call_trace {
    sj_event *events;
    size_t count;
    size_t capacity;
    uint32_t *open; /* functions of the open calls */
    size_t depth;
} call_trace;

typedef struct bench_options {
    size_t events;
    size_t block_events;
    uint32_t step;
    uint32_t dither;
} bench_options;

static uint64_t random_state = 88172645463325252U;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void *must_allocate(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (memory == NULL) {
        fprintf(stderr, "codec_bench: out of memory\n");
        exit(1);
    }
    return memory;
}

static void add_event(call_trace *trace, uint64_t ticks, uint32_t function)
{
    if (trace->count < trace->capacity) {
        trace->events[trace->count++] = (sj_event){.ticks = ticks, .function = function};
    }
}

/* --- simulated program --- */

enum { FUNCTIONS = 300, BODIES = 3, BODY_CALLS = 6, SIMULATED_DEPTH = 20 };

static uint32_t bodies[FUNCTIONS][BODIES][BODY_CALLS];

static void make_bodies(void)
{
    for (unsigned function = 0; function < FUNCTIONS; function++) {
        for (unsigned body = 0; body < BODIES; body++) {
            const unsigned calls = (unsigned)(next_random() % (BODY_CALLS + 1));
            for (unsigned call = 0; call < calls && function + 1 < FUNCTIONS; call++) {
                const uint64_t above = FUNCTIONS - function - 1;
                bodies[function][body][call] = function + 2 + (uint32_t)(next_random() % above);
            }
        }
    }
}

static uint64_t simulated_gap(uint32_t step)
{
    const uint64_t draw = next_random() % 1000;
    if (draw < 870) {
        return step;
    }
    return draw < 990 ? step * (draw % 12) : step * (next_random() % 3000);
}

static void simulate_call(call_trace *trace, uint64_t *ticks, uint32_t function, unsigned depth,
                          uint32_t step)
{
    const uint64_t draw = next_random() % 20;
    const uint32_t *body = bodies[function - 1][draw < 17 ? 0 : draw < 19 ? 1 : 2];
    *ticks += simulated_gap(step);
    add_event(trace, *ticks, function);
    for (unsigned i = 0; i < BODY_CALLS && depth < SIMULATED_DEPTH; i++) {
        if (body[i] != 0 && trace->count < trace->capacity) {
            simulate_call(trace, ticks, body[i], depth + 1, step);
        }
    }
    *ticks += simulated_gap(step);
    add_event(trace, *ticks, SJ_EVENT_LEAVE);
}

static void simulate(call_trace *trace, const bench_options *options)
{
    trace->capacity = options->events;
    trace->events = must_allocate(trace->capacity * sizeof(*trace->events));
    make_bodies();
    uint64_t ticks = 1000000;
    while (trace->count < trace->capacity) {
        simulate_call(trace, &ticks, 1 + (uint32_t)(next_random() % 8), 0, options->step);
    }
}

/* --- recorded program --- */

/* Ends the innermost open call of `function`, and all calls inside it. Ignores an exit without an
 * open call. */
static void leave_function(call_trace *trace, uint32_t function, uint64_t ticks)
{
    size_t depth = trace->depth;
    while (depth > 0 && trace->open[depth - 1] != function) {
        depth--;
    }
    if (depth == 0) {
        return;
    }
    for (; trace->depth >= depth; trace->depth--) {
        add_event(trace, ticks, SJ_EVENT_LEAVE);
    }
}

static void add_record(call_trace *trace, const sj_record *record, uint64_t *last)
{
    const uint64_t low = sj_record_ticks48(record);
    const uint32_t tag = sj_record_tag(record);
    const uint32_t function = tag & SJ_RECORD_FUNCTION_MASK;
    uint64_t ticks = (*last & ~((UINT64_C(1) << 48) - 1)) | low;
    ticks = ticks < *last ? *last : ticks;
    *last = ticks;
    if (tag >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_LEAVE) {
        leave_function(trace, function, ticks);
    } else if (tag >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_ENTER && trace->depth < MAX_DEPTH) {
        trace->open[trace->depth++] = function;
        add_event(trace, ticks, function);
    }
}

static bool load(call_trace *trace, const char *path, const bench_options *options)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return false;
    }
    trace->capacity = options->events;
    trace->events = must_allocate(trace->capacity * sizeof(*trace->events));
    trace->open = must_allocate(MAX_DEPTH * sizeof(*trace->open));
    sj_record record;
    uint64_t last = 0;
    while (trace->count < trace->capacity && fread(&record, sizeof(record), 1, file) == 1) {
        add_record(trace, &record, &last);
    }
    fclose(file);
    return true;
}

static void dither(call_trace *trace, uint32_t noise)
{
    uint64_t last = 0;
    for (size_t i = 0; i < trace->count && noise != 0; i++) {
        uint64_t ticks = trace->events[i].ticks + (next_random() >> 33) % noise;
        last = ticks < last ? last : ticks;
        trace->events[i].ticks = last;
    }
}

/* --- measuring --- */

typedef struct bench_totals {
    size_t bytes;
    size_t column_bytes[16];
    double encode_seconds;
    double structure_seconds;
    double decode_seconds;
} bench_totals;

typedef struct bench_state {
    sj_block_encoder *encoder;
    sj_block_decoder *decoder;
    uint8_t *output;
    size_t capacity;
    sj_stack_frame *frames; /* calls that are open at the start of the current block */
    size_t depth;
    uint64_t calls;
} bench_state;

/* Applies the events of a block to the open calls, which are the next block's key frame. */
static void follow(bench_state *bench, const sj_event *events, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (events[i].function == SJ_EVENT_LEAVE) {
            const sj_stack_frame *ended = &bench->frames[--bench->depth];
            if (bench->depth > 0) {
                bench->frames[bench->depth - 1].child_ticks += events[i].ticks - ended->start_ticks;
            }
            continue;
        }
        sj_stack_frame *frame = &bench->frames[bench->depth++];
        *frame = (sj_stack_frame){.call_index = bench->calls++,
                                  .start_ticks = events[i].ticks,
                                  .stack = 0x7ffc00000000 - bench->depth * 96,
                                  .function = events[i].function};
    }
}

static void add_columns(bench_totals *totals, const uint8_t *block)
{
    sj_reader reader = sj_reader_of(block, SJ_BLOCK_MAX_BYTES);
    sj_read_bytes(&reader, SJ_BLOCK_HEADER_BYTES - 12);
    const uint32_t columns = sj_read_u32(&reader);
    sj_read_bytes(&reader, 8);
    for (uint32_t i = 0; i < columns; i++) {
        const uint16_t id = sj_read_u16(&reader);
        sj_read_bytes(&reader, 6);
        totals->column_bytes[id & 15] += sj_read_u32(&reader);
    }
}

static void check(const sj_block *block, const sj_event *events)
{
    for (size_t i = 0; i < block->header.event_count; i++) {
        const uint32_t symbol =
            block->symbols16 != NULL ? block->symbols16[i] : block->symbols32[i];
        const uint32_t function = symbol == 0 ? SJ_EVENT_LEAVE : block->functions[symbol - 1];
        if (function != events[i].function || block->ticks[i] != events[i].ticks) {
            fprintf(stderr, "codec_bench: event %zu differs\n", i);
            exit(1);
        }
    }
}

static void must(sj_status status)
{
    if (status != SJ_OK) {
        fprintf(stderr, "codec_bench: %s\n", sj_status_text(status));
        exit(1);
    }
}

/* Encodes and decodes one block PASSES times. Adds the shortest times to `totals`. */
static void measure_block(bench_state *bench, const sj_event *events, size_t count, uint32_t step,
                          bench_totals *totals)
{
    const sj_block_input input = {.header = {.kind = SJ_BLOCK_CALLS,
                                             .stream = 1,
                                             .event_count = (uint32_t)count,
                                             .open_depth = (uint32_t)bench->depth,
                                             .clock_step = step},
                                  .frames = bench->frames,
                                  .events = events};
    size_t size = 0;
    double best[3] = {1e9, 1e9, 1e9};
    sj_block block;
    for (int pass = 0; pass < PASSES; pass++) {
        double at = cpu_seconds();
        must(sj_block_encode(bench->encoder, &input, bench->output, bench->capacity, &size));
        const sj_slice bytes = {.data = bench->output, .size = size};
        double seconds[3];
        seconds[0] = cpu_seconds() - at;
        at = cpu_seconds();
        must(sj_block_decode(bench->decoder, bytes, SJ_WANT_STRUCTURE, &block));
        seconds[1] = cpu_seconds() - at;
        at = cpu_seconds();
        must(sj_block_decode(bench->decoder, bytes, SJ_WANT_ALL, &block));
        seconds[2] = cpu_seconds() - at;
        for (int i = 0; i < 3; i++) {
            best[i] = seconds[i] < best[i] ? seconds[i] : best[i];
        }
    }
    check(&block, events);
    totals->bytes += size;
    totals->encode_seconds += best[0];
    totals->structure_seconds += best[1];
    totals->decode_seconds += best[2];
    add_columns(totals, bench->output);
}

static void report(const char *name, const call_trace *trace, const bench_totals *totals,
                   uint64_t calls)
{
    static const char *const names[] = {"",        "key-frame", "functions", "runs",      "times",
                                        "endings", "gaps",      "misses",    "long times"};
    const double events = (double)trace->count;
    printf("%-20s %9zu events %9" PRIu64 " calls  %.4f B/call  encode %.0f  structure %.0f  "
           "decode %.0f M events/s\n",
           name, trace->count, calls, (double)totals->bytes / (double)calls,
           events / totals->encode_seconds * 1e-6, events / totals->structure_seconds * 1e-6,
           events / totals->decode_seconds * 1e-6);
    printf("%20s", "");
    for (unsigned i = 1; i < sizeof(names) / sizeof(names[0]); i++) {
        if (totals->column_bytes[i] != 0) {
            printf("  %s %.4f", names[i], (double)totals->column_bytes[i] / (double)calls);
        }
    }
    printf("\n");
}

static void measure(const char *name, call_trace *trace, const bench_options *options)
{
    bench_state bench = {.capacity = 16U << 20};
    bench_totals totals = {0};
    must(sj_block_encoder_new(&bench.encoder));
    must(sj_block_decoder_new(&bench.decoder));
    bench.output = must_allocate(bench.capacity);
    bench.frames = must_allocate(MAX_DEPTH * sizeof(*bench.frames));
    dither(trace, options->dither);
    for (size_t at = 0; at < trace->count; at += options->block_events) {
        const size_t left = trace->count - at;
        const size_t count = left < options->block_events ? left : options->block_events;
        measure_block(&bench, trace->events + at, count, options->step, &totals);
        follow(&bench, trace->events + at, count);
    }
    report(name, trace, &totals, bench.calls);
    sj_block_encoder_free(bench.encoder);
    sj_block_decoder_free(bench.decoder);
    free(bench.output);
    free(bench.frames);
}

static bool read_option(bench_options *options, const char *name, const char *value)
{
    const unsigned long number = strtoul(value, NULL, 10);
    if (strcmp(name, "--events") == 0) {
        options->events = number;
    } else if (strcmp(name, "--block") == 0) {
        options->block_events = number;
    } else if (strcmp(name, "--step") == 0) {
        options->step = (uint32_t)number;
    } else if (strcmp(name, "--dither") == 0) {
        options->dither = (uint32_t)number;
    } else {
        return false;
    }
    return true;
}

static void free_trace(call_trace *trace)
{
    free(trace->events);
    free(trace->open);
}

int main(int argc, char **argv)
{
    bench_options options = {.events = 8000000, .block_events = 128 * 1024, .step = 26};
    int at = 1;
    for (; at + 1 < argc && read_option(&options, argv[at], argv[at + 1]); at += 2) {
    }
    if (at == argc) {
        call_trace trace = {0};
        simulate(&trace, &options);
        measure("simulated", &trace, &options);
        free_trace(&trace);
    }
    for (; at < argc; at++) {
        call_trace trace = {0};
        if (!load(&trace, argv[at], &options)) {
            return 1;
        }
        measure(argv[at], &trace, &options);
        free_trace(&trace);
    }
    return 0;
}
