/* Reads the call graph of a session back from its rows. */
#include "collector-server/store/cost_sums.h"
#include "collector-server/store/session_state.h"

static sj_status restore_row(sj_session_state *state, const sj_path_list_row *row)
{
    sj_reader reader = sj_reader_of(row->state.data, row->state.size);
    sj_path_node node = {.parent = (uint32_t)(row->parent_path_id & UINT32_MAX),
                         .depth = (uint32_t)row->depth,
                         .recursive = row->recursive != 0,
                         .calls = row->calls,
                         .unwound = row->unwound,
                         .untrusted = row->untrusted,
                         .rare = row->rare != 0};
    node.function = (uint32_t)sj_read_varint(&reader);
    node.total_ticks = sj_read_varint(&reader);
    node.self_ticks = sj_read_varint(&reader);
    node.min_ticks = sj_read_varint(&reader);
    node.max_ticks = sj_read_varint(&reader);
    sj_path_cost cost;
    const bool has_cost = sj_cost_state_read(&reader, &cost);
    const uint32_t number = (uint32_t)(row->path_id & UINT32_MAX);
    if (reader.bad || number != sj_callgraph_node_count(state->graph)) {
        return SJ_ECORRUPT;
    }
    if (row->histogram.size != 0) {
        SJ_TRY(sj_path_histogram_decode(row->histogram, &node.histogram));
    }
    sj_status status = sj_callgraph_restore(state->graph, &node);
    sj_path_histogram_deinit(&node.histogram);
    if (status == SJ_OK && has_cost) {
        status = sj_callgraph_restore_cost(state->graph, number, &cost);
    }
    if (status == SJ_OK) {
        status = sj_session_fold_node(state, number);
    }
    if (status == SJ_OK) {
        state->shadows[number].stored = true;
        state->stored_nodes = number + 1;
    }
    return status;
}

static void clear_dirty_totals(sj_session_state *state)
{
    for (size_t i = 0; i < state->function_count; ++i) {
        state->functions[i].dirty = false;
    }
    for (size_t i = 0; i < state->edge_count; ++i) {
        state->edges[i].dirty = false;
    }
}

static sj_status load_estimates(sj_statements *sql, sj_session_state *state, sj_error *error)
{
    SJ_TRY(SJ_START(sql, estimate_list, error, .session_id = state->session_id));
    sj_estimate_list_row row;
    sj_status status;
    while ((status = sj_next_estimate_list(sql, &row, error)) == SJ_OK) {
        const sj_stored_estimate stored = {.function_id = row.function_id,
                                           .untimed = row.untimed_calls,
                                           .timed = row.sampled_calls,
                                           .error_ns = row.error_ns};
        status = sj_call_estimates_restore(&state->estimates, &stored);
        if (status != SJ_OK) {
            break;
        }
    }
    sj_sql_reset(sql, SJ_SQL_ESTIMATE_LIST);
    return status == SJ_ENOTFOUND ? SJ_OK : status;
}

sj_status sj_session_load_graph(sj_statements *sql, sj_session_state *state, sj_error *error)
{
    if (state->graph != NULL) {
        return SJ_OK;
    }
    SJ_TRY(sj_callgraph_new(&state->graph));
    sj_callgraph_limit(state->graph, state->most_paths);
    const int64_t base = state->session_id << 32;
    SJ_TRY(SJ_START(sql, path_list, error, .after_path_id = base,
                    .before_path_id = base + ((int64_t)1 << 32)));
    sj_path_list_row row;
    sj_status status;
    while ((status = sj_next_path_list(sql, &row, error)) == SJ_OK) {
        status = restore_row(state, &row);
        if (status != SJ_OK) {
            sj_fail(error, status, "the call paths of session %lld cannot be read back",
                    (long long)state->session_id);
            break;
        }
    }
    sj_sql_reset(sql, SJ_SQL_PATH_LIST);
    clear_dirty_totals(state);
    if (status == SJ_ENOTFOUND) {
        status = sj_session_load_slow_calls(sql, state, error);
    }
    if (status == SJ_OK) {
        status = load_estimates(sql, state, error);
    }
    if (status == SJ_OK) {
        return SJ_OK;
    }
    sj_session_drop_graph(state);
    return status;
}
