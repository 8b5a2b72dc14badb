#include "tests/support/trace_maker.h"

#include "collector-server/store/block_outline.h"
#include "collector-server/store/database.h"
#include "collector-server/store/deferred_exits.h"
#include "collector-server/store/function_bitmap.h"
#include "proto/block/block.h"
#include "proto/block/call_trust.h"
#include "proto/callgraph/callgraph.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STARTED_TICKS = 1000000, TICKS_NUMERATOR = 10, TICKS_DENOMINATOR = 26 };

typedef struct open_call {
    uint64_t index, start, child;
    uint32_t function;
    uint32_t callees;
    size_t made;    /* index in trace.calls */
    uint64_t left;  /* when the call jumped to another; 0: it has not */
    uint64_t block; /* number of the block in which the call was entered */
} open_call;

typedef struct stream_maker {
    const trace_shape *shape;
    trace *made;
    sqlite3 *database;
    sj_callgraph *graph;
    sj_block_encoder *encoder;
    sj_block_decoder *decoder;
    sqlite3_stmt *insert;
    int64_t session_id, stream_id, thread_id;
    uint64_t random, ticks;
    open_call *stack;
    uint32_t depth;
    sj_event *events;
    sj_block_ending *endings;
    uint32_t event_count, ending_count;
    uint64_t first_event, first_call, calls;
    sj_stack_frame *frames; /* calls that were open at the start of the block */
    uint32_t frame_count;
    uint64_t block_start;
    uint64_t block; /* number of the block that is being made */
} stream_maker;

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static void run(sqlite3 *database, const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(database, sql, NULL, NULL, &message) != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", sql, message);
        abort();
    }
}

__attribute__((format(printf, 2, 3))) static void run_formatted(sqlite3 *database,
                                                                const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *sql = sqlite3_vmprintf(format, arguments);
    va_end(arguments);
    run(database, sql);
    sqlite3_free(sql);
}

static int64_t to_ns(uint64_t ticks)
{
    return (int64_t)(ticks * TICKS_NUMERATOR / TICKS_DENOMINATOR);
}

static int64_t function_id_of(const stream_maker *maker, uint32_t function)
{
    /* Ids are unique in the session: module 2 has the ids from 1 on, then module 1 follows. */
    const uint32_t count = maker->shape->functions;
    return function <= count ? 100000 + function : 1000 + (int64_t)(function - count);
}

static void begin_block(stream_maker *maker)
{
    maker->block++;
    maker->first_event += maker->event_count;
    maker->first_call = maker->calls;
    maker->event_count = maker->ending_count = 0;
    maker->frame_count = maker->depth;
    for (uint32_t i = 0; i < maker->depth; ++i) {
        const open_call *call = &maker->stack[i];
        maker->frames[i] = (sj_stack_frame){.call_index = call->index,
                                            .start_ticks = call->start,
                                            .child_ticks = call->child,
                                            .jumped_ticks = call->left,
                                            .function = call->function};
    }
}

static int compare_late(const void *left, const void *right)
{
    const sj_deferred_exit *a = left;
    const sj_deferred_exit *b = right;
    return (a->call_index > b->call_index) - (a->call_index < b->call_index);
}

/* Stores outlines for about two of three blocks, each with a random limit of its bytes. A small
 * outline holds only a few of the block's calls. */
static void insert_outline(stream_maker *maker, const sj_block *block,
                           const sj_block_summary *summary)
{
    uint64_t random = maker->block;
    sj_block_outline *outline = malloc(sizeof(*outline));
    REQUIRE(outline != NULL);
    (void)next_random(&random);
    const size_t budget = next_random(&random) % 3 == 0 ? 0 : next_random(&random) % 800;
    if (budget != 0 &&
        sj_block_outline_encode(summary->outline, &block->header, budget, outline) == SJ_OK) {
        REQUIRE(outline->calls.size <= budget);
        sqlite3_stmt *insert;
        REQUIRE(sqlite3_prepare_v2(maker->database,
                                   "INSERT INTO block_outlines VALUES "
                                   "((SELECT max(block_id) FROM blocks),?,?,?)",
                                   -1, &insert, NULL) == SQLITE_OK);
        sqlite3_bind_int64(insert, 1, maker->stream_id);
        sqlite3_bind_int64(insert, 2, (sqlite3_int64)outline->floor_ticks);
        sqlite3_bind_blob64(insert, 3, outline->calls.data, outline->calls.size, SQLITE_STATIC);
        REQUIRE(sqlite3_step(insert) == SQLITE_DONE);
        sqlite3_finalize(insert);
        ++maker->made->outlines;
    }
    free(outline);
}

static void insert_block(stream_maker *maker, const sj_block *block, sj_slice bytes)
{
    sj_block_summary summary;
    REQUIRE(sj_callgraph_apply(maker->graph, block, NULL, NULL, &summary) == SJ_OK);
    uint8_t bitmap[SJ_FUNCTION_BITMAP_MAX_BYTES];
    const size_t bitmap_bytes =
        sj_function_bitmap_fill(block->functions, block->function_count, bitmap);
    sqlite3_stmt *insert = maker->insert;
    const int64_t integers[] = {maker->stream_id,
                                SJ_BLOCK_CALLS,
                                (int64_t)block->header.first_event,
                                block->header.event_count,
                                (int64_t)block->header.first_call,
                                block->header.call_count,
                                (int64_t)block->header.first_ticks,
                                (int64_t)block->header.last_ticks,
                                block->header.open_depth,
                                summary.max_depth,
                                (int64_t)summary.max_duration_ticks};
    for (int i = 0; i < 11; ++i) {
        sqlite3_bind_int64(insert, i + 1, integers[i]);
    }
    sqlite3_bind_blob64(insert, 12, bitmap, bitmap_bytes, SQLITE_TRANSIENT);
    sqlite3_bind_null(insert, 13);
    sqlite3_bind_null(insert, 14);
    sqlite3_bind_null(insert, 15);
    if (summary.late_count != 0) {
        sj_deferred_exit *late = malloc(summary.late_count * sizeof(*late));
        memcpy(late, summary.late, summary.late_count * sizeof(*late));
        qsort(late, summary.late_count, sizeof(*late), compare_late);
        const size_t bound = sj_deferred_exits_bound(summary.late_count);
        uint8_t *output = malloc(bound);
        size_t size;
        REQUIRE(sj_deferred_exits_encode(late, summary.late_count, block->header.first_ticks,
                                         output, bound, &size) == SJ_OK);
        sqlite3_bind_int64(insert, 13, (sqlite3_int64)late[0].call_index);
        sqlite3_bind_int64(insert, 14, (sqlite3_int64)late[summary.late_count - 1].call_index);
        sqlite3_bind_blob64(insert, 15, output, size, free);
        free(late);
    }
    sqlite3_bind_blob64(insert, 16, bytes.data, bytes.size, SQLITE_STATIC);
    REQUIRE(sqlite3_step(insert) == SQLITE_DONE);
    sqlite3_reset(insert);
    ++maker->made->blocks;
    insert_outline(maker, block, &summary);
}

static void end_block(stream_maker *maker)
{
    if (maker->event_count == 0) {
        return;
    }
    const sj_block_input input = {
        .header = {.version = SJ_BLOCK_VERSION,
                   .kind = SJ_BLOCK_CALLS,
                   .stream = (uint32_t)maker->stream_id,
                   .first_event = maker->first_event,
                   .first_call = maker->first_call,
                   .event_count = maker->event_count,
                   .clock_step = 1,
                   .open_depth = maker->frame_count,
                   .first_ticks = maker->events[0].ticks,
                   .last_ticks = maker->events[maker->event_count - 1].ticks},
        .frames = maker->frames,
        .events = maker->events,
        .endings = maker->endings,
        .ending_count = maker->ending_count,
    };
    const size_t bound = sj_block_bound(&input);
    uint8_t *output = malloc(bound);
    size_t size = 0;
    REQUIRE(sj_block_encode(maker->encoder, &input, output, bound, &size) == SJ_OK);
    sj_block block;
    const sj_slice bytes = {output, size};
    REQUIRE(sj_block_decode(maker->decoder, bytes, SJ_WANT_ALL, &block) == SJ_OK);
    insert_block(maker, &block, bytes);
    free(output);
    begin_block(maker);
}

static size_t note_enter(stream_maker *maker, uint32_t function)
{
    trace *made = maker->made;
    if (!maker->shape->keep_calls) {
        return 0;
    }
    if (made->count == made->capacity) {
        made->capacity = made->capacity * 2 + 1024;
        made->calls = realloc(made->calls, made->capacity * sizeof(*made->calls));
        REQUIRE(made->calls != NULL);
    }
    const open_call *caller = maker->depth != 0 ? &maker->stack[maker->depth - 1] : NULL;
    const uint64_t stream = (uint64_t)maker->stream_id;
    made->calls[made->count] = (made_call){
        .call_id = (int64_t)sj_call_id_of(stream, maker->calls),
        .session_id = maker->session_id,
        .stream_id = maker->stream_id,
        .thread_id = maker->thread_id,
        .function_id = function_id_of(maker, function),
        .parent_id = caller != NULL ? (int64_t)sj_call_id_of(stream, caller->index) : -1,
        .caller_function_id = caller != NULL ? function_id_of(maker, caller->function) : -1,
        .tail_caller_id = -1,
        .physical_parent_id = caller != NULL ? (int64_t)sj_call_id_of(stream, caller->index) : -1,
        .left_ns = -1,
        .depth = maker->depth,
        .start_ns = to_ns(maker->ticks - STARTED_TICKS),
        .end_ns = -1,
        .ending = SJ_ENDING_OPEN,
    };
    return made->count++;
}

static void enter(stream_maker *maker, uint32_t function)
{
    maker->events[maker->event_count++] = (sj_event){.ticks = maker->ticks, .function = function};
    const size_t made = note_enter(maker, function);
    maker->stack[maker->depth++] = (open_call){.index = maker->calls++,
                                               .start = maker->ticks,
                                               .function = function,
                                               .made = made,
                                               .block = maker->block};
}

static void leave(stream_maker *maker);

static bool has_left(const stream_maker *maker, uint32_t above)
{
    return maker->depth > above && maker->stack[maker->depth - 1 - above].left != 0;
}

/* The innermost call jumps to another function. The new call is nested in it, or replaces it in a
 * chain of tail calls. */
static void tail_call(stream_maker *maker, uint32_t function)
{
    open_call *caller = &maker->stack[maker->depth - 1];
    const size_t made = caller->made;
    const bool folds = has_left(maker, 1) && next_random(&maker->random) % 2 == 0 &&
                       maker->event_count + 2 <= maker->shape->block_events;
    made_call *noted = maker->shape->keep_calls ? &maker->made->calls[made] : NULL;
    if (noted != NULL && caller->block == maker->block) {
        noted->left_ns = to_ns(maker->ticks - STARTED_TICKS);
    }
    caller->left = maker->ticks;
    if (folds) {
        leave(maker);
        if (noted != NULL) {
            noted->left_ns = noted->end_ns;
        }
    }
    maker->events[maker->event_count].tail_call = 0;
    enter(maker, function);
    maker->events[maker->event_count - 1].tail_call = folds ? 2 : 1;
    if (maker->shape->keep_calls) {
        made_call *callee = &maker->made->calls[maker->made->count - 1];
        callee->tail_caller_id = maker->made->calls[made].call_id;
        callee->physical_parent_id = maker->made->calls[made].physical_parent_id;
    }
}

static void leave(stream_maker *maker)
{
    const open_call call = maker->stack[--maker->depth];
    const uint64_t duration = maker->ticks - call.start;
    const bool throws = call.left == 0 && next_random(&maker->random) % 50 == 0;
    const int ending = throws ? SJ_ENDING_UNWOUND : SJ_ENDING_RETURNED;
    if (ending != SJ_ENDING_RETURNED) {
        maker->endings[maker->ending_count++] =
            (sj_block_ending){maker->event_count, (uint32_t)ending};
    }
    maker->events[maker->event_count++] = (sj_event){.ticks = maker->ticks};
    if (maker->depth != 0) {
        maker->stack[maker->depth - 1].child += duration;
    }
    if (maker->shape->keep_calls) {
        made_call *noted = &maker->made->calls[call.made];
        noted->end_ns = to_ns(maker->ticks - STARTED_TICKS);
        noted->left_ns = call.left != 0 ? to_ns(call.left - STARTED_TICKS) : -1;
        noted->self_ns =
            call.child != 0 ? to_ns(duration - call.child) : noted->end_ns - noted->start_ns;
        noted->ending = ending;
    }
}

/* Makes one step of a program whose functions call a few fixed callees in turn, and sometimes
 * another one. */
static void step_regularly(stream_maker *maker)
{
    const trace_shape *shape = maker->shape;
    open_call *caller = maker->depth != 0 ? &maker->stack[maker->depth - 1] : NULL;
    const uint32_t odd = next_random(&maker->random) % 50 == 0;
    const uint32_t function = caller != NULL ? caller->function : 0;
    const uint32_t wanted = (function * UINT32_C(2654435761) >> 9) % 4 + odd;
    if (caller != NULL && (caller->callees >= wanted || maker->depth == shape->max_depth) &&
        maker->depth > 1) {
        leave(maker);
        return;
    }
    uint64_t seed = function * UINT64_C(977) + (caller != NULL ? caller->callees % 4 : 0) + odd;
    if (caller != NULL) {
        ++caller->callees;
    }
    (void)next_random(&seed);
    enter(maker, 1 + (uint32_t)(next_random(&seed) % shape->functions));
}

/* Makes all calls, in regular steps or as a random walk in depth. Some calls of the walk begin at
 * equal times. */
static void make_calls(stream_maker *maker)
{
    const trace_shape *shape = maker->shape;
    while (maker->calls < shape->calls) {
        if (maker->event_count == shape->block_events) {
            end_block(maker);
        }
        if (has_left(maker, 0)) { /* the call that it jumped to has ended */
            leave(maker);
            continue;
        }
        maker->ticks += next_random(&maker->random) % 4 == 0 ? 0 : next_random(&maker->random) % 90;
        if (shape->regular) {
            step_regularly(maker);
            continue;
        }
        const bool deeper = maker->depth < shape->max_depth &&
                            (maker->depth < 2 || next_random(&maker->random) % 100 < 50);
        if (deeper) {
            const uint64_t skewed =
                next_random(&maker->random) % (1 + next_random(&maker->random) % shape->functions);
            const uint32_t function = 1 + (uint32_t)skewed +
                                      (next_random(&maker->random) % 3 == 0 ? shape->functions : 0);
            if (shape->tail_calls && maker->depth > 0 && next_random(&maker->random) % 4 == 0) {
                tail_call(maker, function);
            } else {
                enter(maker, function);
            }
        } else {
            leave(maker);
        }
    }
    while (!shape->leave_open && maker->depth > 0) {
        if (maker->event_count == shape->block_events) {
            end_block(maker);
        }
        maker->ticks += has_left(maker, 0) ? 0 : 13;
        leave(maker);
    }
    end_block(maker);
}

static void note_open_calls(const stream_maker *maker)
{
    for (uint32_t i = 0; i < maker->depth; ++i) {
        const open_call *call = &maker->stack[i];
        run_formatted(maker->database,
                      "INSERT INTO open_calls (stream_id, call_index, function_id, depth, start_ns,"
                      " flags) VALUES (%lld, %lld, %lld, %d, %lld, 0)",
                      (long long)maker->stream_id, (long long)call->index,
                      (long long)function_id_of(maker, call->function), (int)i,
                      (long long)to_ns(call->start - STARTED_TICKS));
    }
}

static void make_stream(sqlite3 *database, const trace_shape *shape, trace *made,
                        sj_callgraph *graph, int64_t session_id, int number)
{
    stream_maker maker = {.shape = shape, .made = made, .database = database, .graph = graph};
    maker.session_id = session_id;
    maker.stream_id = session_id * 10 + number;
    maker.thread_id = session_id * 1000 + number;
    maker.random = shape->seed * 7919 + (uint64_t)maker.stream_id;
    maker.ticks = STARTED_TICKS + (uint64_t)number * 100;
    const size_t depth = (size_t)shape->max_depth + 2;
    maker.stack = calloc(depth, sizeof(*maker.stack));
    maker.frames = calloc(depth, sizeof(*maker.frames));
    maker.events = calloc(shape->block_events, sizeof(*maker.events));
    maker.endings = calloc(shape->block_events, sizeof(*maker.endings));
    REQUIRE(sj_block_encoder_new(&maker.encoder) == SJ_OK);
    REQUIRE(sj_block_decoder_new(&maker.decoder) == SJ_OK);
    run_formatted(database,
                  "INSERT INTO threads (thread_id, session_id, number, tid, name, is_main) "
                  "VALUES (%lld, %lld, %d, %lld, 'thread \"%d\"', %d)",
                  (long long)maker.thread_id, (long long)session_id, number,
                  (long long)(4000 + maker.thread_id), number, number == 1);
    REQUIRE(sqlite3_prepare_v2(
                database,
                "INSERT INTO blocks (stream_id, kind, first_event, event_count, first_call, "
                "call_count, first_ticks, last_ticks, open_depth, max_depth, max_duration_ticks, "
                "functions, late_first_call, late_last_call, late, data, lost_calls, lost_events) "
                "VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,0,0)",
                -1, &maker.insert, NULL) == SQLITE_OK);
    run_formatted(database,
                  "INSERT INTO streams (stream_id, session_id, number, thread_id, calls) "
                  "VALUES (%lld, %lld, %d, %lld, %u)",
                  (long long)maker.stream_id, (long long)session_id, number,
                  (long long)maker.thread_id, shape->calls);
    make_calls(&maker);
    note_open_calls(&maker);
    sqlite3_finalize(maker.insert);
    sj_block_encoder_free(maker.encoder);
    sj_block_decoder_free(maker.decoder);
    free(maker.stack);
    free(maker.frames);
    free(maker.events);
    free(maker.endings);
}

static void make_functions(sqlite3 *database, const trace_shape *shape)
{
    static const int64_t first_ids[] = {0, 1001, 100001};
    for (int module = 1; module <= 2; ++module) {
        run_formatted(database,
                      "INSERT INTO modules (module_id, build_id, functions_digest, path, "
                      "first_function_id, function_count) VALUES (%d, x'0%d', x'00', "
                      "'/opt/game/lib%d.so', %lld, %u)",
                      module, module, module, (long long)first_ids[module], shape->functions);
        for (uint32_t i = 0; i < shape->functions; ++i) {
            run_formatted(
                database,
                "INSERT INTO functions VALUES (%lld, %d, %u, 16, 'ns%d::f\u00fcnf<%u>\"', "
                "'', %u, 'symtab', NULL)",
                (long long)first_ids[module] + i, module, i * 16, module, i, i);
        }
    }
}

/* Stores aggregates as the store does, as far as readers use them. */
static void store_graph(sqlite3 *database, const sj_callgraph *graph, int64_t session_id,
                        const trace_shape *shape)
{
    const stream_maker names = {.shape = shape};
    sqlite3_stmt *insert;
    REQUIRE(sqlite3_prepare_v2(database,
                               "INSERT INTO call_paths (path_id, session_id, parent_path_id, "
                               "function_id, depth, recursive, calls, total_ns, self_ns, min_ns, "
                               "max_ns, unwound, untrusted, histogram, state) "
                               "VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,0,?13,x'')",
                               -1, &insert, NULL) == SQLITE_OK);
    for (uint32_t i = 1; i < sj_callgraph_node_count(graph); ++i) {
        const sj_path_node of = sj_callgraph_node(graph, i);
        const sj_path_node *node = &of;
        const int64_t integers[] = {session_id << 32 | i,
                                    session_id,
                                    session_id << 32 | node->parent,
                                    function_id_of(&names, node->function),
                                    node->depth,
                                    node->recursive,
                                    (int64_t)node->calls,
                                    to_ns(node->total_ticks),
                                    to_ns(node->self_ticks),
                                    node->calls != 0 ? to_ns(node->min_ticks) : 0,
                                    to_ns(node->max_ticks),
                                    (int64_t)node->unwound};
        for (int k = 0; k < 12; ++k) {
            sqlite3_bind_int64(insert, k + 1, integers[k]);
        }
        if (node->parent == 0) {
            sqlite3_bind_null(insert, 3);
        }
        const size_t bound = sj_path_histogram_encoded_bound(&node->histogram);
        uint8_t *blob = malloc(bound + 1);
        sqlite3_bind_blob64(insert, 13, blob,
                            sj_path_histogram_encode(&node->histogram, blob, bound), free);
        REQUIRE(sqlite3_step(insert) == SQLITE_DONE);
        sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
}

static void make_session(sqlite3 *database, const trace_shape *shape, trace *made, int number)
{
    sj_callgraph *graph;
    REQUIRE(sj_callgraph_new(&graph) == SJ_OK);
    run_formatted(database,
                  "INSERT INTO sessions (session_id, uuid, device_id, name, command, state, "
                  "started_realtime_ns, started_ticks, tick_ns_numerator, tick_ns_denominator, "
                  "stored_calls) VALUES (%d, randomblob(16), 1, 'made %d', './game', 'completed', "
                  "%lld, %d, %d, %d, %lld)",
                  number, number, 1700000000000000000 + number * 1000000000ll, STARTED_TICKS,
                  TICKS_NUMERATOR, TICKS_DENOMINATOR, (long long)shape->calls * shape->streams);
    run_formatted(database,
                  "INSERT INTO hook_plans VALUES (%d, 1, x'0%d'), (%d, 2, x'0%d');"
                  "INSERT INTO session_modules VALUES (%d, 1, 2, %d, 1, %u, %u, NULL),"
                  "(%d, 2, 1, %d, %u, %u, %u, NULL)",
                  number * 2, number, number * 2 + 1, number, number, number * 2 + 1,
                  shape->functions, shape->functions, number, number * 2, shape->functions + 1,
                  shape->functions, shape->functions);
    for (int stream = 1; stream <= shape->streams; ++stream) {
        make_stream(database, shape, made, graph, number, stream);
    }
    store_graph(database, graph, number, shape);
    run_formatted(database,
                  "INSERT INTO function_stats (session_id, function_id, calls, total_ns, self_ns, "
                  "min_ns, max_ns, unwound, untrusted, histogram) SELECT session_id, function_id, "
                  "sum(calls), sum(CASE WHEN recursive THEN 0 ELSE total_ns END), sum(self_ns), "
                  "min(min_ns), max(max_ns), sum(unwound), 0, max(histogram) FROM call_paths "
                  "WHERE session_id = %d GROUP BY function_id;"
                  "UPDATE sessions SET stored_blocks = (SELECT count(*) FROM blocks) "
                  "WHERE session_id = %d",
                  number, number);
    sj_callgraph_free(graph);
}

void make_trace(const char *path, const trace_shape *shape, trace *made)
{
    *made = (trace){0};
    unlink(path);
    sqlite3 *database;
    sj_error error = {0};
    if (sj_database_open(path, SJ_DATABASE_CREATE, &database, &error) != SJ_OK) {
        fprintf(stderr, "%s\n", error.text);
        abort();
    }
    run(database, "PRAGMA synchronous = OFF; BEGIN");
    run(database, "INSERT INTO devices (device_id, uuid, name, first_seen_realtime_ns, "
                  "last_seen_realtime_ns) VALUES (1, x'00', 'bench phone', 0, 0)");
    make_functions(database, shape);
    for (int session = 1; session <= shape->sessions; ++session) {
        make_session(database, shape, made, session);
    }
    run(database, "COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
    sqlite3_close(database);
}

void free_trace(trace *made)
{
    free(made->calls);
}
