/* Design notes
 *
 * Before the first row is written, a block is decoded, checked against its session and replayed
 * into the call graph. The check covers known functions and overlaps with stored blocks. So a
 * refused block changes nothing. A failure after that point rolls the batch back and drops the
 * graph.
 *
 * Overlap: the same events may come from the drain and, cut differently, from a salvager. If a
 * stored block covers all events of a new block and has equal events, the new block is a duplicate.
 * If the events differ, or the blocks overlap only in part, the new block is refused and
 * quarantined. Storing it would count calls twice. Acknowledging it would make its sender delete
 * what may be the correct version. */
#include "collector-server/store/block_rules.h"
#include "collector-server/store/deferred_exits.h"
#include "collector-server/store/enum_text.h"
#include "collector-server/store/function_bitmap.h"
#include "collector-server/store/store_internal.h"
#include "proto/base/array.h"

#include <stdlib.h>
#include <string.h>

enum {
    TRIM_PERIOD = 64, /* blocks after which memory is checked within a batch */
    BUSY_BLOCK_EVENTS = 8192
};

typedef struct block_run {
    sj_store *store;
    sj_session_state *state;
    sj_slice bytes;
    sj_block block;
    sj_block_summary summary;
    sj_stream_state *stream;
    int64_t block_id;
    sj_error *error;
} block_run;

/* Compares a block with a stored block that covers all its events. Sets *duplicate if the events
 * are equal. Otherwise quarantines the block: one of the two is wrong, and the second must not be
 * acknowledged. */
static sj_status judge_repeat(block_run *run, const sj_block_header *header, int64_t stored_block,
                              bool *duplicate)
{
    const sj_status status =
        sj_store_compare_block(run->store, stored_block, run->bytes, run->error);
    if (status == SJ_OK) {
        *duplicate = true;
        return SJ_EEXIST;
    }
    if (status != SJ_EEXIST) {
        return status;
    }
    SJ_TRY(sj_store_quarantine(run->store, run->state, header, run->bytes, run->error->text,
                               run->error));
    return sj_fail(run->error, SJ_EEXIST,
                   "events %lld to %lld of stream %u are stored with other contents; this block is "
                   "quarantined",
                   (long long)header->first_event,
                   (long long)(header->first_event + header->event_count), header->stream);
}

/* Returns SJ_OK for a new block. Returns SJ_EEXIST with *duplicate set for a stored one, and
 * SJ_EEXIST alone for a block that contradicts what is stored. */
static sj_status check_duplicate(block_run *run, const sj_block_header *header, int64_t stream_id,
                                 bool *duplicate)
{
    sj_statements *sql = &run->store->sql;
    sj_status status;
    if (header->event_count == 0) {
        int64_t found = 0;
        status = SJ_GET(sql, block_find, &found, run->error, .stream_id = stream_id,
                        .kind = header->kind, .first_event = header->first_event,
                        .event_count = header->event_count);
        return status == SJ_OK          ? judge_repeat(run, header, found, duplicate)
               : status == SJ_ENOTFOUND ? SJ_OK
                                        : status;
    }
    const int64_t end = (int64_t)(header->first_event + header->event_count);
    sj_block_before_row stored;
    status = SJ_FIND(sql, block_before, &stored, run->error, .stream_id = stream_id,
                     .kind = header->kind, .end_event = end);
    if (status != SJ_OK) {
        return status == SJ_ENOTFOUND ? SJ_OK : status;
    }
    const int64_t first = stored.first_event;
    const int64_t stop = first + stored.event_count;
    if (stop <= (int64_t)header->first_event) {
        return SJ_OK;
    }
    if (first <= (int64_t)header->first_event && stop >= end) {
        return judge_repeat(run, header, stored.block_id, duplicate);
    }
    SJ_TRY(sj_store_quarantine(run->store, run->state, header, run->bytes,
                               "it overlaps a stored block in part", run->error));
    return sj_fail(run->error, SJ_EEXIST, "events %lld to %lld of stream %u overlap a stored block",
                   (long long)header->first_event, (long long)end, header->stream);
}

static bool is_known(void *context, uint32_t function)
{
    int64_t id;
    return sj_session_function_id(context, function, &id);
}

static sj_status check_functions(block_run *run)
{
    return sj_block_check_functions(&run->block, is_known, run->state, run->error);
}

static int compare_leaves(const void *left, const void *right)
{
    const uint64_t a = ((const sj_deferred_exit *)left)->call_index;
    const uint64_t b = ((const sj_deferred_exit *)right)->call_index;
    return a < b ? -1 : a > b;
}

/* Encodes the deferred exits, sorted, into the store's scratch memory. */
static sj_status encode_late(block_run *run, sj_slice *encoded, int64_t *first, int64_t *last)
{
    const size_t count = run->summary.late_count;
    const size_t sorted_bytes = count * sizeof(sj_deferred_exit);
    const size_t capacity = sj_deferred_exits_bound(count);
    uint8_t *scratch = NULL;
    size_t size = 0;
    SJ_TRY(sj_store_scratch(run->store, sorted_bytes + capacity, &scratch));
    memcpy(scratch, run->summary.late, sorted_bytes);
    sj_deferred_exit *sorted = (sj_deferred_exit *)(void *)scratch;
    qsort(sorted, count, sizeof(*sorted), compare_leaves);
    *first = (int64_t)sorted[0].call_index;
    *last = (int64_t)sorted[count - 1].call_index;
    SJ_TRY(sj_deferred_exits_encode(sorted, count, run->block.header.first_ticks,
                                    scratch + sorted_bytes, capacity, &size));
    *encoded = (sj_slice){.data = scratch + sorted_bytes, .size = size};
    return SJ_OK;
}

static sj_status insert_block(block_run *run)
{
    const sj_block_header *header = &run->block.header;
    uint8_t bitmap[SJ_FUNCTION_BITMAP_MAX_BYTES];
    const sj_slice functions = {
        .data = bitmap,
        .size = sj_function_bitmap_fill(run->block.functions, run->block.function_count, bitmap)};
    int64_t late_first = 0;
    int64_t late_last = 0;
    sj_slice late = {0};
    const bool is_late = run->summary.late_count > 0;
    if (is_late) {
        SJ_TRY(encode_late(run, &late, &late_first, &late_last));
    }
    const sj_status status = SJ_RUN(
        &run->store->sql, block_add, run->error, .stream_id = run->stream->stream_id,
        .kind = header->kind, .first_event = header->first_event,
        .event_count = header->event_count, .first_call = header->first_call,
        .call_count = header->call_count, .first_ticks = header->first_ticks,
        .last_ticks = header->last_ticks, .open_depth = header->open_depth,
        .max_depth = run->summary.max_depth, .max_duration_ticks = run->summary.max_duration_ticks,
        .lost_calls = header->lost_calls, .lost_events = header->lost_events,
        .functions = functions, .late_first_call = is_late ? &late_first : NULL,
        .late_last_call = is_late ? &late_last : NULL, .late = is_late ? late : (sj_slice){0},
        .data = run->bytes);
    run->block_id = sqlite3_last_insert_rowid(run->store->database);
    return status;
}

static sj_status insert_gaps(block_run *run)
{
    const sj_tick_clock *clock = &run->state->clock;
    for (size_t i = 0; i < run->block.gap_count; ++i) {
        const sj_gap *gap = &run->block.gaps[i];
        if (gap->reason == SJ_GAP_BEFORE_RECORDING) {
            continue; /* no calls are missing: a flag marks those that began before */
        }
        SJ_TRY(SJ_RUN(&run->store->sql, gap_add, run->error, .session_id = run->state->session_id,
                      .stream_id = &run->stream->stream_id, .block_id = &run->block_id,
                      .reason = sj_text_of_gap_reason(gap->reason), .calls = gap->calls,
                      .events = gap->events, .start_ns = sj_ticks_at_ns(clock, gap->start_ticks),
                      .end_ns = sj_ticks_at_ns(clock, gap->end_ticks)));
    }
    return SJ_OK;
}

static sj_status store_block(block_run *run)
{
    const sj_block_header *header = &run->block.header;
    SJ_TRY(sj_session_add_stream(&run->store->sql, run->state, header->stream, &run->stream,
                                 run->error));
    SJ_TRY(insert_block(run));
    SJ_TRY(sj_store_put_outline(run->store, run->block_id, run->stream->stream_id, header,
                                run->bytes.size, &run->summary, run->error));
    SJ_TRY(insert_gaps(run));
    SJ_TRY(sj_store_add_values(&run->store->sql, run->state, run->stream->stream_id, &run->block,
                               run->error));
    if (!run->state->is_invalid) {
        sj_session_count_block(run->state, run->stream, &run->block, &run->summary,
                               run->bytes.size);
    }
    run->state->dirty = true;
    SJ_TRY(sj_array_reserve(&run->state->uncounted_blocks, &run->state->uncounted_capacity,
                            run->state->uncounted_count, 1, sizeof(*run->state->uncounted_blocks)));
    run->state->uncounted_blocks[run->state->uncounted_count++] = run->block_id;
    run->store->counters.calls += header->kind == SJ_BLOCK_CALLS ? header->call_count : 0;
    if (run->state->first_uncounted_block == 0) {
        run->state->first_uncounted_block = run->block_id;
    }
    SJ_TRY(sj_store_note_timeline(run->store, run->state, run->stream->stream_id, &run->block,
                                  &run->summary, run->error));
    if (header->kind == SJ_BLOCK_CALLS) {
        SJ_TRY(sj_store_note_open_calls(run->store, run->state, run->stream->stream_id, &run->block,
                                        run->error));
    }
    return SJ_OK;
}

/* Handles a duplicate. An empty block can have the numbers of a stored block, because nothing
 * happened between the two. It may still carry the end of its stream, which is then stored. */
static sj_status note_end_of_stream(block_run *run)
{
    const sj_block_header *header = &run->block.header;
    if (header->kind != SJ_BLOCK_CALLS || header->event_count != 0 ||
        (header->flags & SJ_BLOCK_LAST) == 0 || run->stream->ended) {
        return SJ_OK;
    }
    SJ_TRY(sj_block_decode(run->store->decoder, run->bytes, SJ_WANT_ALL, &run->block));
    SJ_TRY(check_functions(run));
    run->stream->ended = true;
    SJ_TRY(SJ_RUN(&run->store->sql, stream_end, run->error, .stream_id = run->stream->stream_id));
    return sj_store_note_open_calls(run->store, run->state, run->stream->stream_id, &run->block,
                                    run->error);
}

/* Adds the block to the session's call graph. Only measures the block if the graph is not in
 * memory. */
static sj_status replay_block(block_run *run)
{
    sj_store *store = run->store;
    sj_session_state *state = run->state;
    sj_stack_context stack = {.store = store,
                              .state = state,
                              .stream_id = run->stream != NULL ? run->stream->stream_id : 0};
    state->is_busy = run->block.header.event_count >= BUSY_BLOCK_EVENTS;
    bool is_held = sj_store_may_hold_graph(store, state);
    sj_status status = is_held ? sj_session_load_graph(&store->sql, state, run->error) : SJ_OK;
    /* the fault is the session's, not the block's: writing its aggregates will fail */
    if (sj_store_is_own_fault(status)) {
        is_held = false;
    } else if (status != SJ_OK) {
        return status;
    }
    sj_block united;
    SJ_TRY(sj_store_unite_functions(store, state, &run->block, &united));
    if (is_held) {
        status =
            sj_callgraph_apply(state->graph, &united, sj_store_stack_frames, &stack, &run->summary);
    }
    if (is_held && status == SJ_OK) {
        status = sj_call_estimates_add(&state->estimates, &united);
    }
    if (status == SJ_ELIMIT) { /* too many call paths: the session's fault, too */
        sj_store_invalidate(state);
        is_held = false;
    }
    if (!is_held) {
        status = sj_callgraph_measure(store->scratch_graph, &run->block, sj_store_stack_frames,
                                      &stack, &run->summary);
    }
    if (status != SJ_OK) {
        return sj_fail(run->error, status, "a block of stream %u contradicts itself (%s)",
                       run->block.header.stream, sj_status_text(status));
    }
    if (!is_held && !state->is_invalid) {
        state->is_invalid = true;
    }
    return SJ_OK;
}

/* Folds rare paths, and then writes all rows that name paths in the same transaction, because the
 * paths have new numbers. A session without such rows gets them when they are due: its blocks give
 * the same numbers again. */
static sj_status fold_rare_paths(block_run *run)
{
    sj_session_state *state = run->state;
    SJ_TRY(sj_store_fold_rare_paths(run->store, state, run->error));
    return state->is_renumbered && state->stored_nodes != 0
               ? sj_session_flush(&run->store->sql, state, run->error)
               : SJ_OK;
}

static sj_status apply_block(sj_store *store, sj_frame_input *frame, sj_error *error)
{
    block_run run = {.store = store, .bytes = frame->payload, .error = error};
    sj_block_header header;
    sj_status status = sj_block_read_header(frame->payload, &header);
    if (status != SJ_OK) {
        return sj_fail(error, status, "a block's header cannot be read");
    }
    if (!sj_block_numbers_are_sound(&header)) {
        return sj_fail(error, SJ_ECORRUPT, "a block's header holds numbers out of range");
    }
    SJ_TRY(sj_store_session(store, header.session.bytes, sizeof(header.session.bytes), &run.state,
                            error));
    run.stream = sj_session_find_stream(run.state, header.stream);
    if (run.stream != NULL) {
        status = check_duplicate(&run, &header, run.stream->stream_id, &frame->is_duplicate);
        if (status == SJ_EEXIST && frame->is_duplicate) {
            run.block.header = header;
            return note_end_of_stream(&run);
        }
        SJ_TRY(status);
    }
    SJ_TRY(sj_store_check_full(store, error));
    status = sj_block_decode(store->decoder, frame->payload, SJ_WANT_ALL, &run.block);
    if (status != SJ_OK) {
        return sj_fail(error, status, "a block cannot be decoded");
    }
    SJ_TRY(check_functions(&run));
    if (header.kind == SJ_BLOCK_CALLS) {
        SJ_TRY(replay_block(&run));
    }
    status = store_block(&run);
    if (status == SJ_OK) {
        status = fold_rare_paths(&run);
    }
    /* the graph has the block already: only a rollback makes the graph and the database agree
     * again */
    return status == SJ_ECORRUPT || status == SJ_ENOTFOUND || status == SJ_EINVAL ? SJ_EIO : status;
}

sj_status sj_store_apply_block(sj_store *store, sj_frame_input *frame, sj_error *error)
{
    SJ_TRY(apply_block(store, frame, error));
    return ++store->applied_blocks % TRIM_PERIOD == 0 ? sj_store_trim_sessions(store, error)
                                                      : SJ_OK;
}
