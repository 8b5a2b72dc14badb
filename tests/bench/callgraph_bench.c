/* Measures how fast raw records become blocks (ns an event), and blocks become a call graph (M
 * calls/s). Both are CPU time on one core, the best of several rounds. The call graph gets its
 * blocks in order, shuffled, and with calls that stay open across all blocks. */
#include "proto/callgraph/callgraph.h"
#include "tests/support/call_rows.h"
#include "tests/support/call_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 5, BLOCK_EVENTS = 128 * 1024, SMALL_BLOCK_EVENTS = 4096 };

typedef struct bench_case {
    const char *name;
    trace_shape shape;
    uint32_t block_events;
} bench_case;

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void must(sj_status status)
{
    if (status != SJ_OK) {
        fprintf(stderr, "callgraph_bench: %s\n", sj_status_text(status));
        exit(1);
    }
}

/* The sink does nothing, so that only the assembler's cost is measured. */
static uint32_t first_stream(void *context, uint64_t stack, bool own, uint64_t ticks)
{
    (void)context;
    (void)stack;
    (void)own;
    (void)ticks;
    return 1;
}

static sj_status drop_block(void *context, const sj_block_header *header, sj_slice bytes)
{
    (void)header;
    *(uint64_t *)context += bytes.size;
    return SJ_OK;
}

static void drop_mark(void *context, uint32_t index, bool end, uint64_t ticks)
{
    (void)context;
    (void)index;
    (void)end;
    (void)ticks;
}

static void measure_assemble(const bench_case *bench, const call_trace *trace)
{
    sj_block_encoder *encoder;
    must(sj_block_encoder_new(&encoder));
    double best = 1e9;
    uint64_t bytes = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const sj_assembler_options options = {.stack_low = TRACE_STACK_LOW,
                                              .stack_high = TRACE_STACK_HIGH,
                                              .start_ticks = 1,
                                              .block_events = bench->block_events,
                                              .encoder = encoder};
        bytes = 0;
        const sj_assembler_sink sink = {
            .context = &bytes, .open_stream = first_stream, .block = drop_block, .mark = drop_mark};
        sj_assembler *assembler;
        const double start = cpu_seconds();
        must(sj_assembler_new(&options, &sink, &assembler));
        must(sj_assembler_feed(assembler, trace->records, trace->record_count, trace->end_ticks));
        must(sj_assembler_end(assembler, trace->end_ticks, false, 0));
        const double spent = cpu_seconds() - start;
        sj_assembler_free(assembler);
        best = spent < best ? spent : best;
    }
    printf("  assemble + encode  %6.2f ns/event  %.3f B/call\n",
           best * 1e9 / (double)trace->record_count, (double)bytes / (double)trace->call_count);
    sj_block_encoder_free(encoder);
}

typedef enum measured { DECODE, APPLY, ROWS } measured;

static double measure_blocks(const block_store *store, const size_t *order, size_t count,
                             measured what, size_t *late, uint32_t *nodes, size_t *stored_bytes)
{
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        sj_block_decoder *decoder;
        sj_callgraph *graph;
        sj_call_reader *reader;
        must(sj_block_decoder_new(&decoder));
        must(sj_callgraph_new(&graph));
        must(sj_call_reader_new(&reader));
        *late = 0;
        const double start = cpu_seconds();
        for (size_t i = 0; i < count; i++) {
            const stored_block *stored = &store->blocks[order[i]];
            const sj_slice bytes = {.data = stored->data, .size = stored->size};
            sj_block block;
            must(sj_block_decode(decoder, bytes, SJ_WANT_ALL, &block));
            if (what == APPLY) {
                sj_block_summary summary;
                must(
                    sj_callgraph_apply(graph, &block, block_store_lookup, (void *)store, &summary));
                *late += summary.late_count;
            } else if (what == ROWS) {
                const sj_call_rows *rows;
                must(sj_call_reader_read(reader, &block, block_store_lookup, (void *)store, &rows));
            }
        }
        const double spent = cpu_seconds() - start;
        best = spent < best ? spent : best;
        *nodes = sj_callgraph_node_count(graph);
        *stored_bytes = 0;
        for (uint32_t n = 1; n < *nodes; n++) {
            uint8_t buffer[1 << 14];
            const sj_path_node node = sj_callgraph_node(graph, n);
            *stored_bytes += sj_path_histogram_encode(&node.histogram, buffer, sizeof(buffer));
        }
        sj_call_reader_free(reader);
        sj_callgraph_free(graph);
        sj_block_decoder_free(decoder);
    }
    return best;
}

static void run_case(const bench_case *bench)
{
    call_trace trace = trace_generate(&bench->shape);
    block_store store = {0};
    sj_assembler_counters counters;
    trace_assemble(&trace, bench->block_events, &store, &counters);
    size_t *order = malloc((store.count + 1) * sizeof(*order));
    size_t count = 0;
    for (size_t i = 0; order != NULL && i < store.count; i++) {
        if (store.blocks[i].header.kind == SJ_BLOCK_CALLS) {
            order[count++] = i;
        }
    }
    printf("%s: %zu calls, %zu blocks of %u events\n", bench->name, trace.call_count, count,
           bench->block_events);
    measure_assemble(bench, &trace);
    const double calls = (double)trace.call_count / 1e6;
    size_t late;
    uint32_t nodes;
    size_t bytes;
    const double decode = measure_blocks(&store, order, count, DECODE, &late, &nodes, &bytes);
    const double rows = measure_blocks(&store, order, count, ROWS, &late, &nodes, &bytes);
    const double ordered = measure_blocks(&store, order, count, APPLY, &late, &nodes, &bytes);
    uint64_t random = 1;
    for (size_t i = count; i > 1; i--) {
        const size_t other = trace_random(&random) % i;
        const size_t swapped = order[i - 1];
        order[i - 1] = order[other];
        order[other] = swapped;
    }
    const double shuffled = measure_blocks(&store, order, count, APPLY, &late, &nodes, &bytes);
    printf("  decode %.0f, decode + rows %.0f, decode + apply %.0f in order, %.0f shuffled"
           " M calls/s\n",
           calls / decode, calls / rows, calls / ordered, calls / shuffled);
    printf("  %u paths, %zu late leaves, %.0f B of histogram a path\n", nodes - 1, late,
           (double)bytes / nodes);
    free(order);
    block_store_free(&store);
    trace_free(&trace);
}

int main(void)
{
    const bench_case cases[] = {
        {"program (interpreter-like)",
         {.seed = 3,
          .calls = 4000000,
          .functions = 545,
          .max_depth = 14,
          .base_depth = 3,
          .tick_step = 26,
          .tick_choices = 6,
          .realistic = true},
         BLOCK_EVENTS},
        {"random walk (worst case: nothing to predict)",
         {.seed = 1,
          .calls = 4000000,
          .functions = 8,
          .max_depth = 5,
          .tick_step = 26,
          .tick_choices = 64},
         BLOCK_EVENTS},
        {"3,000 calls open across all blocks",
         {.seed = 2,
          .calls = 4000000,
          .functions = 8,
          .max_depth = 3004,
          .base_depth = 3000,
          .tick_step = 26,
          .tick_choices = 6,
          .leave_all = true},
         BLOCK_EVENTS},
        {"the same in small blocks",
         {.seed = 2,
          .calls = 1000000,
          .functions = 8,
          .max_depth = 3004,
          .base_depth = 3000,
          .tick_step = 26,
          .tick_choices = 6,
          .leave_all = true},
         SMALL_BLOCK_EVENTS},
        {"20,000 calls open (stored stacks)",
         {.seed = 2,
          .calls = 4000000,
          .functions = 8,
          .max_depth = 20004,
          .base_depth = 20000,
          .tick_step = 26,
          .tick_choices = 6,
          .leave_all = true},
         BLOCK_EVENTS},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        run_case(&cases[i]);
    }
    return 0;
}
