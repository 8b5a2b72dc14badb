/* Design notes
 *
 * A flush writes rows only for what changed since the last flush. The graph lists its dirty nodes.
 * Folding a node adds its gain to the aggregates of its function and of its (caller, callee) edge.
 * These aggregates are exact and in ticks. The histogram of a function is the sum over its paths,
 * kept by the graph. The next flush subtracts the old histogram of a changed path and adds the new
 * one. The column `state` holds the exact ticks of a path, because rounded nanoseconds cannot be
 * added to after a restart. */
#include "collector-server/store/cost_sums.h"
#include "collector-server/store/session_state.h"
#include "proto/base/array.h"

#include <math.h>
#include <stdlib.h>

enum { STATE_MAX_BYTES = 64 + SJ_COST_STATE_BYTES };

typedef struct flush_run {
    sj_statements *sql;
    sj_session_state *state;
    uint8_t *bytes; /* buffer for encoded histograms */
    size_t capacity;
    sj_function_costs costs;
    sj_error *error;
} flush_run;

static sj_status encode_histogram(flush_run *run, const sj_histogram *histogram, sj_slice *encoded)
{
    const size_t bound = sj_histogram_encoded_bound(histogram);
    SJ_TRY(sj_array_reserve(&run->bytes, &run->capacity, 0, bound, 1));
    *encoded = (sj_slice){.data = run->bytes,
                          .size = sj_histogram_encode(histogram, run->bytes, run->capacity)};
    return SJ_OK;
}

static sj_status encode_path_histogram(flush_run *run, const sj_path_histogram *histogram,
                                       sj_slice *encoded)
{
    const size_t bound = sj_path_histogram_encoded_bound(histogram);
    SJ_TRY(sj_array_reserve(&run->bytes, &run->capacity, 0, bound, 1));
    *encoded = (sj_slice){.data = run->bytes,
                          .size = sj_path_histogram_encode(histogram, run->bytes, run->capacity)};
    return SJ_OK;
}

static sj_status find_function(flush_run *run, uint32_t function, int64_t *id)
{
    *id = 0;
    if (function != 0 && !sj_session_function_id(run->state, function, id)) {
        return sj_fail(run->error, SJ_ECORRUPT, "function %u has no module", function);
    }
    return SJ_OK;
}

static sj_status put_path(flush_run *run, uint32_t number)
{
    const sj_path_node of = sj_callgraph_node(run->state->graph, number);
    const sj_path_node *node = &of;
    const sj_tick_clock *clock = &run->state->clock;
    uint8_t bytes[STATE_MAX_BYTES];
    sj_writer writer = sj_writer_of(bytes, sizeof(bytes));
    sj_write_varint(&writer, node->function);
    sj_write_varint(&writer, node->total_ticks);
    sj_write_varint(&writer, node->self_ticks);
    sj_write_varint(&writer, node->min_ticks);
    sj_write_varint(&writer, node->max_ticks);
    const sj_path_cost *cost = sj_callgraph_cost(run->state->graph, number);
    sj_cost_columns costs;
    sj_cost_columns_of_path(cost, &costs);
    if (cost != NULL) {
        sj_cost_state_write(&writer, cost);
    }
    const sj_slice exact = {.data = bytes, .size = sj_writer_used(&writer)};
    sj_slice histogram = {0};
    int64_t function_id = 0;
    SJ_TRY(find_function(run, node->function, &function_id));
    SJ_TRY(encode_path_histogram(run, &node->histogram, &histogram));
    const int64_t base = run->state->session_id << 32;
    const int64_t parent = base | node->parent;
    const int64_t least = sj_ticks_span_ns(clock, node->min_ticks);
    const int64_t most = sj_ticks_span_ns(clock, node->max_ticks);
    return SJ_RUN(
        run->sql, path_put, run->error, .path_id = base | number,
        .session_id = run->state->session_id, .parent_path_id = node->parent != 0 ? &parent : NULL,
        .function_id = function_id, .depth = node->depth, .recursive = node->recursive,
        .calls = node->calls, .total_ns = sj_ticks_span_ns(clock, node->total_ticks),
        .self_ns = sj_ticks_span_ns(clock, node->self_ticks),
        .min_ns = node->calls != 0 ? &least : NULL, .max_ns = node->calls != 0 ? &most : NULL,
        .unwound = node->unwound, .untrusted = node->untrusted, .histogram = histogram,
        .state = exact, .rare = node->rare, .cpu_ns = costs.known[0], .cpu_self_ns = costs.known[1],
        .allocations = costs.known[2], .allocated_bytes = costs.known[3], .frees = costs.known[4],
        .freed_bytes = costs.known[5], .allocated_self_bytes = costs.known[6]);
}

static sj_status put_function(flush_run *run, const sj_function_totals *totals)
{
    const sj_tick_clock *clock = &run->state->clock;
    int64_t function_id = 0;
    SJ_TRY(find_function(run, totals->function, &function_id));
    const sj_histogram none = {0};
    const sj_histogram *sum = sj_callgraph_function_histogram(run->state->graph, totals->function);
    sj_slice histogram = {0};
    SJ_TRY(encode_histogram(run, sum != NULL ? sum : &none, &histogram));
    const int64_t least = sj_ticks_span_ns(clock, totals->min_ticks);
    const int64_t most = sj_ticks_span_ns(clock, totals->max_ticks);
    sj_cost_columns costs;
    sj_cost_columns_of_function(sj_function_costs_find(&run->costs, totals->function), &costs);
    return SJ_RUN(run->sql, function_stats_put, run->error, .session_id = run->state->session_id,
                  .function_id = function_id, .calls = totals->calls,
                  .total_ns = sj_ticks_span_ns(clock, totals->total_ticks),
                  .self_ns = sj_ticks_span_ns(clock, totals->self_ticks),
                  .min_ns = totals->calls != 0 ? &least : NULL,
                  .max_ns = totals->calls != 0 ? &most : NULL, .unwound = totals->unwound,
                  .untrusted = totals->untrusted, .histogram = histogram, .cpu_ns = costs.known[0],
                  .cpu_self_ns = costs.known[1], .allocations = costs.known[2],
                  .allocated_bytes = costs.known[3], .frees = costs.known[4],
                  .freed_bytes = costs.known[5], .allocated_self_bytes = costs.known[6]);
}

/* Stores the estimate of a function's times. The standard errors before and after the graph was
 * loaded are independent, so their squares are added. */
static sj_status put_estimate(flush_run *run, uint32_t function, const sj_call_estimate *estimate)
{
    int64_t function_id = 0;
    SJ_TRY(find_function(run, function, &function_id));
    const sj_stored_estimate before = sj_call_estimates_stored(run->state->estimates, function_id);
    const double ticks = sj_call_estimate_error(estimate);
    const double more = (double)sj_ticks_span_ns(&run->state->clock, (uint64_t)(ticks + 0.5));
    return SJ_RUN(run->sql, estimate_put, run->error, .session_id = run->state->session_id,
                  .function_id = function_id, .untimed_calls = before.untimed + estimate->untimed,
                  .sampled_calls = before.timed + estimate->timed,
                  .error_ns = llround(hypot(before.error_ns, more)));
}

static sj_status put_estimates(flush_run *run)
{
    const sj_call_estimate *estimate = NULL;
    size_t place = 0;
    uint32_t function = 0;
    while ((estimate = sj_call_estimates_next(run->state->estimates, &place, &function)) != NULL) {
        SJ_TRY(put_estimate(run, function, estimate));
    }
    sj_call_estimates_clean(run->state->estimates);
    return SJ_OK;
}

static sj_status put_edge(flush_run *run, const sj_edge_totals *totals)
{
    const sj_tick_clock *clock = &run->state->clock;
    int64_t caller = 0;
    int64_t callee = 0;
    SJ_TRY(find_function(run, totals->caller, &caller));
    SJ_TRY(find_function(run, totals->callee, &callee));
    return SJ_RUN(run->sql, edge_put, run->error, .session_id = run->state->session_id,
                  .caller_function_id = caller, .callee_function_id = callee,
                  .calls = totals->calls, .total_ns = sj_ticks_span_ns(clock, totals->total_ticks),
                  .self_ns = sj_ticks_span_ns(clock, totals->self_ticks));
}

static sj_status put_node(flush_run *run, uint32_t node)
{
    if (node == 0) { /* the root is not a call */
        return SJ_OK;
    }
    SJ_TRY(sj_session_fold_node(run->state, node));
    SJ_TRY(put_path(run, node));
    run->state->shadows[node].stored = true;
    return SJ_OK;
}

static sj_status put_graph(flush_run *run)
{
    sj_session_state *state = run->state;
    if (state->graph == NULL) {
        return SJ_OK;
    }
    if (state->is_renumbered) { /* all nodes are dirty then */
        const int64_t base = state->session_id << 32;
        SJ_TRY(SJ_RUN(run->sql, path_forget, run->error, .after_path_id = base,
                      .before_path_id = base + ((int64_t)1 << 32)));
        state->is_renumbered = false;
    }
    size_t count = 0;
    SJ_TRY(sj_callgraph_settle(state->graph));
    const uint32_t *dirty = sj_callgraph_dirty(state->graph, &count);
    for (size_t i = 0; i < count; ++i) {
        SJ_TRY(put_node(run, dirty[i]));
    }
    /* also write nodes whose calls have not ended yet: stored numbers must have no holes */
    const uint32_t nodes = sj_callgraph_node_count(state->graph);
    uint32_t known = (uint32_t)state->stored_nodes;
    for (known = known == 0 ? 1 : known; known < nodes; ++known) {
        if (known >= state->shadow_count || !state->shadows[known].stored) {
            SJ_TRY(put_node(run, known));
        }
    }
    SJ_TRY(sj_callgraph_fold_histograms(state->graph));
    SJ_TRY(sj_function_costs_sum(state->graph, &run->costs));
    for (size_t i = 0; i < state->function_count; ++i) {
        if (state->functions[i].dirty) {
            SJ_TRY(put_function(run, &state->functions[i]));
            state->functions[i].dirty = false;
        }
    }
    SJ_TRY(put_estimates(run));
    for (size_t i = 0; i < state->edge_count; ++i) {
        if (state->edges[i].dirty) {
            SJ_TRY(put_edge(run, &state->edges[i]));
            state->edges[i].dirty = false;
        }
    }
    SJ_TRY(sj_session_flush_slow_calls(run->sql, state, run->error));
    state->stored_nodes = nodes;
    sj_callgraph_clean(state->graph);
    return SJ_OK;
}

static sj_status put_streams(flush_run *run)
{
    for (size_t i = 0; i < run->state->stream_count; ++i) {
        sj_stream_state *stream = &run->state->streams[i];
        if (stream->dirty) {
            SJ_TRY(SJ_RUN(run->sql, stream_sums, run->error, .stream_id = stream->stream_id,
                          .calls = stream->calls,
                          .first_enter_ns = stream->entered ? &stream->first_enter_ns : NULL,
                          .last_leave_ns = stream->left ? &stream->last_leave_ns : NULL,
                          .max_depth = stream->max_depth, .ended = stream->ended));
            SJ_TRY(sj_session_flush_timeline(run->sql, stream, run->error));
            stream->dirty = false;
        }
    }
    return SJ_OK;
}

sj_status sj_session_flush(sj_statements *sql, sj_session_state *state, sj_error *error)
{
    const sj_session_totals *totals = &state->totals;
    flush_run run = {.sql = sql, .state = state, .error = error};
    SJ_TRY(SJ_RUN(sql, session_totals, error, .session_id = state->session_id,
                  .blocks = totals->blocks, .bytes = totals->bytes, .calls = totals->calls,
                  .events = totals->events, .lost_calls = totals->lost_calls,
                  .lost_events = totals->lost_events, .folded_paths = totals->folded_paths,
                  .folded_calls = totals->folded_calls));
    const bool is_removed = sqlite3_changes(sql->database) == 0;
    if (!is_removed) {
        const sj_status status = put_graph(&run);
        free(run.bytes);
        sj_function_costs_deinit(&run.costs);
        SJ_TRY(status);
        SJ_TRY(put_streams(&run));
        SJ_TRY(sj_session_note_missing(sql, state, error));
    }
    state->row_bytes = totals->bytes;
    state->dirty = false;
    state->write_now = false;
    state->is_rebuild = false;
    state->is_quarantined = false;
    state->dirty_since_ns = 0;
    state->first_uncounted_block = 0;
    state->stored_uncounted_from = 0;
    state->uncounted_count = 0;
    return SJ_OK;
}
