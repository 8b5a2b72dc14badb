#include "collector-server/import/call_replay.h"

#include "agent/abi/record.h"
#include "agent/assembler/assembler.h"
#include "collector-server/import/interval_sort.h"
#include "proto/base/array.h"

#include <stdlib.h>

enum {
    BATCH_RECORDS = 256,
    ALL_BLOCK_EVENTS =
        4 * 1024 * 1024, /* events that all stacks hold before their blocks are cut */
    LEAST_BLOCK_EVENTS = 1024,
    MOST_BLOCK_EVENTS = 128 * 1024
};

typedef struct open_call {
    uint32_t function;
    int64_t end_ns; /* the end of a whole call */
} open_call;

/* One stack of a thread. */
typedef struct replay_stack {
    sj_assembler *assembler;
    struct call_replay *replay;
    uint32_t stream;
    sj_status status; /* first error of the sink */
    sj_record batch[BATCH_RECORDS];
    size_t batch_count;
    int64_t last_ns;
    open_call *open;
    size_t depth, capacity;
} replay_stack;

typedef struct replay_thread {
    replay_stack **stacks;
    uint32_t *streams;
    size_t count, capacity, stream_capacity;
} replay_thread;

typedef struct call_replay {
    const sj_replay_options *options;
    const sj_replay_sink *sink;
    replay_thread *threads;
    sj_block_encoder *encoder;
    uint32_t stream_count;
    uint32_t block_events;
    uint32_t current; /* 1 + the thread whose whole calls are being replayed; 0: none yet */
    sj_replay_sums sums;
    sj_error *error;
} call_replay;

static uint64_t to_ticks(const call_replay *replay, int64_t at_ns)
{
    return replay->options->base_ticks +
           ((uint64_t)at_ns - (uint64_t)replay->options->log->first_ns);
}

static uint32_t get_stream(void *context, uint64_t stack_address, bool own_stack,
                           uint64_t first_ticks)
{
    (void)stack_address;
    (void)own_stack;
    (void)first_ticks;
    return ((replay_stack *)context)->stream;
}

static sj_status pass_block(void *context, const sj_block_header *header, sj_slice bytes)
{
    replay_stack *stack = context;
    (void)header;
    if (stack->status == SJ_OK) {
        stack->status = stack->replay->sink->block(stack->replay->sink->context, bytes);
        stack->replay->sums.blocks++;
    }
    return stack->status;
}

static sj_status feed(replay_stack *stack)
{
    const size_t count = stack->batch_count;
    stack->batch_count = 0;
    SJ_TRY(sj_assembler_feed(stack->assembler, stack->batch, count,
                             to_ticks(stack->replay, stack->last_ns)));
    return stack->status;
}

static sj_status put(replay_stack *stack, sj_record_kind kind, sj_managed_stack how,
                     uint32_t function, int64_t at_ns)
{
    stack->batch[stack->batch_count++] =
        sj_record_make(to_ticks(stack->replay, at_ns), how,
                       sj_record_make_tag(kind, stack->replay->options->functions[function - 1]));
    stack->last_ns = at_ns;
    stack->replay->sums.records++;
    return stack->batch_count == BATCH_RECORDS ? feed(stack) : SJ_OK;
}

static sj_status enter(replay_stack *stack, uint32_t function, int64_t at_ns, int64_t end_ns)
{
    SJ_TRY(sj_array_reserve(&stack->open, &stack->capacity, stack->depth, 1, sizeof(*stack->open)));
    stack->open[stack->depth++] = (open_call){.function = function, .end_ns = end_ns};
    stack->replay->sums.calls++;
    return put(stack, SJ_RECORD_ENTER, SJ_MANAGED_CALL, function, at_ns);
}

static sj_status leave(replay_stack *stack, int64_t at_ns, bool is_thrown)
{
    const uint32_t function = stack->open[--stack->depth].function;
    return put(stack, SJ_RECORD_LEAVE, is_thrown ? SJ_MANAGED_THROWN : SJ_MANAGED_CALL, function,
               at_ns);
}

static sj_status make_stack(call_replay *replay, int64_t first_ns, replay_stack **made)
{
    replay_stack *stack = calloc(1, sizeof(*stack));
    if (stack == NULL) {
        return SJ_ENOMEM;
    }
    stack->replay = replay;
    stack->stream = ++replay->stream_count;
    stack->last_ns = first_ns;
    const sj_assembler_options options = {.session = replay->options->session,
                                          .start_ticks = to_ticks(replay, first_ns),
                                          .block_events = replay->block_events,
                                          .encoder = replay->encoder};
    const sj_assembler_sink sink = {
        .context = stack, .open_stream = get_stream, .block = pass_block};
    const sj_status status = sj_assembler_new(&options, &sink, &stack->assembler);
    if (status != SJ_OK) {
        free(stack);
        return status;
    }
    *made = stack;
    return SJ_OK;
}

static void free_stack(replay_stack *stack)
{
    sj_assembler_free(stack->assembler);
    free(stack->open);
    free(stack);
}

static sj_status add_stack(call_replay *replay, uint32_t number, int64_t first_ns)
{
    replay_thread *thread = &replay->threads[number];
    SJ_TRY(sj_array_reserve(&thread->stacks, &thread->capacity, thread->count, 1,
                            sizeof(*thread->stacks)));
    SJ_TRY(sj_array_reserve(&thread->streams, &thread->stream_capacity, thread->count, 1,
                            sizeof(*thread->streams)));
    SJ_TRY(make_stack(replay, first_ns, &thread->stacks[thread->count]));
    thread->streams[thread->count] = thread->stacks[thread->count]->stream;
    thread->count++;
    return replay->sink->streams(replay->sink->context, number, thread->streams, thread->count);
}

/* Ends the calls of a stack that end at `start_ns` at the latest and do not contain the interval.
 */
static sj_status end_before(replay_stack *stack, int64_t start_ns, int64_t end_ns)
{
    while (stack->depth != 0) {
        const int64_t ends = stack->open[stack->depth - 1].end_ns;
        if (ends > start_ns || ends >= end_ns) {
            break;
        }
        SJ_TRY(leave(stack, ends, false));
    }
    return SJ_OK;
}

static sj_status end_stacks(call_replay *replay, uint32_t number)
{
    replay_thread *thread = &replay->threads[number];
    for (size_t i = 0; i < thread->count; i++) {
        replay_stack *stack = thread->stacks[i];
        /* Calls without an exit stay open. They are outside of those that have one. */
        while (replay->options->log->threads[number].has_intervals && stack->depth != 0 &&
               stack->open[stack->depth - 1].end_ns != SJ_INTERVAL_OPEN) {
            SJ_TRY(leave(stack, stack->open[stack->depth - 1].end_ns, false));
        }
        SJ_TRY(feed(stack));
        SJ_TRY(sj_assembler_end(stack->assembler, to_ticks(replay, stack->last_ns), false, 0));
        SJ_TRY(stack->status);
        free_stack(stack);
        thread->stacks[i] = NULL;
    }
    thread->count = 0;
    return SJ_OK;
}

static sj_status replay_interval(void *context, const sj_interval *interval)
{
    call_replay *replay = context;
    if (replay->current != interval->thread + 1) {
        if (replay->current != 0) {
            SJ_TRY(end_stacks(replay, replay->current - 1));
        }
        replay->current = interval->thread + 1;
    }
    replay_thread *thread = &replay->threads[interval->thread];
    for (size_t i = 0; i < SJ_REPLAY_STACKS; i++) {
        if (i == thread->count) {
            SJ_TRY(add_stack(replay, interval->thread, interval->start_ns));
        }
        replay_stack *stack = thread->stacks[i];
        SJ_TRY(end_before(stack, interval->start_ns, interval->end_ns));
        if (stack->depth == 0 || stack->open[stack->depth - 1].end_ns >= interval->end_ns) {
            return enter(stack, interval->function, interval->start_ns, interval->end_ns);
        }
    }
    return sj_fail(replay->error, SJ_ELIMIT,
                   "more than %d calls of a thread overlap at %lld ns, without one that contains "
                   "the others: these are not calls of one thread",
                   SJ_REPLAY_STACKS, (long long)interval->start_ns);
}

static sj_status replay_record(call_replay *replay, const sj_import_record *record)
{
    if (replay->options->log->threads[record->thread].has_intervals) {
        return SJ_OK;
    }
    replay_thread *thread = &replay->threads[record->thread];
    if (thread->count == 0) {
        SJ_TRY(add_stack(replay, record->thread, record->at_ns));
    }
    const sj_import_kind kind = sj_import_record_kind(record);
    return kind == SJ_IMPORT_ENTER
               ? enter(thread->stacks[0], sj_import_record_function(record), record->at_ns, 0)
               : leave(thread->stacks[0], record->at_ns, kind == SJ_IMPORT_UNWIND);
}

static sj_status replay_events(call_replay *replay)
{
    const sj_import_log *log = replay->options->log;
    sj_import_record record;
    uint64_t count = 0;
    rewind(log->records);
    while (fread(&record, sizeof(record), 1, log->records) == 1) {
        SJ_TRY(replay_record(replay, &record));
        count++;
    }
    if (count != log->record_count) {
        return sj_fail(replay->error, SJ_EIO, "cannot read the temporary file");
    }
    for (uint32_t i = 0; i < log->thread_count; i++) {
        SJ_TRY(end_stacks(replay, i));
    }
    return SJ_OK;
}

static sj_status replay_all(call_replay *replay)
{
    const sj_import_log *log = replay->options->log;
    bool has_intervals = false;
    for (size_t i = 0; i < log->thread_count; i++) {
        has_intervals = has_intervals || log->threads[i].has_intervals;
    }
    SJ_TRY(replay_events(replay));
    if (!has_intervals) {
        return SJ_OK;
    }
    SJ_TRY(sj_interval_sort(log, replay->options->beside, replay_interval, replay));
    return replay->current != 0 ? end_stacks(replay, replay->current - 1) : SJ_OK;
}

sj_status sj_call_replay(const sj_replay_options *options, const sj_replay_sink *sink,
                         sj_replay_sums *sums, sj_error *error)
{
    const size_t thread_count = options->log->thread_count;
    call_replay replay = {.options = options, .sink = sink, .error = error};
    const size_t events = ALL_BLOCK_EVENTS / (thread_count + 1);
    replay.block_events = events > MOST_BLOCK_EVENTS    ? MOST_BLOCK_EVENTS
                          : events < LEAST_BLOCK_EVENTS ? LEAST_BLOCK_EVENTS
                                                        : (uint32_t)events;
    replay.threads = calloc(thread_count + 1, sizeof(*replay.threads));
    sj_status status = replay.threads != NULL ? SJ_OK : SJ_ENOMEM;
    if (status == SJ_OK) {
        status = sj_block_encoder_new(&replay.encoder);
    }
    if (status == SJ_OK) {
        status = replay_all(&replay);
    }
    for (size_t i = 0; replay.threads != NULL && i < thread_count; i++) {
        for (size_t k = 0; k < replay.threads[i].count; k++) {
            if (replay.threads[i].stacks[k] != NULL) {
                free_stack(replay.threads[i].stacks[k]);
            }
        }
        free(replay.threads[i].stacks);
        free(replay.threads[i].streams);
    }
    free(replay.threads);
    sj_block_encoder_free(replay.encoder);
    *sums = replay.sums;
    return status;
}
