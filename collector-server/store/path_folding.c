/* Folds the call paths beyond the budget of a session.
 *
 * Design notes. Folding renumbers all paths, in memory at once. The rows that name paths follow in
 * the same transaction. This file updates the timeline, because steps of later blocks come with new
 * numbers. The caller writes call paths and slow calls with the aggregates next. Half of the budget
 * is kept, so that writing all rows costs about one row per new path. */
#include "collector-server/store/store_internal.h"

#include <stdlib.h>

/* Moves the shadow of each node to the node's new number. Adds up the shadows of merged nodes. */
static sj_status move_shadows(sj_session_state *state, const sj_path_folding *folding)
{
    const uint32_t count = sj_callgraph_node_count(state->graph);
    sj_node_shadow *moved = calloc(count, sizeof(*moved));
    if (moved == NULL) {
        return SJ_ENOMEM;
    }
    for (size_t i = 0; i < state->shadow_count && i < folding->moved_count; ++i) {
        const sj_node_shadow *before = &state->shadows[i];
        sj_node_shadow *now = &moved[folding->moved[i]];
        now->calls += before->calls;
        now->total_ticks += before->total_ticks;
        now->self_ticks += before->self_ticks;
        now->unwound += before->unwound;
        now->untrusted += before->untrusted;
    }
    free(state->shadows);
    state->shadows = moved;
    state->shadow_count = state->shadow_capacity = count;
    return SJ_OK;
}

static sj_status move_timeline(sj_statements *sql, const sj_session_state *state,
                               const sj_path_folding *folding, sj_error *error)
{
    SJ_TRY(SJ_START(sql, timeline_path_list, error, .session_id = state->session_id));
    sj_timeline_path_list_row row;
    sj_status status;
    while ((status = sj_next_timeline_path_list(sql, &row, error)) == SJ_OK) {
        const int64_t path = row.path_id;
        const uint32_t node = (uint32_t)(path & UINT32_MAX);
        const int64_t moved = (path & ~(int64_t)UINT32_MAX) |
                              (node < folding->moved_count ? folding->moved[node] : 0);
        status = SJ_RUN(sql, timeline_path_move, error, .stream_id = row.stream_id,
                        .level = row.level, .number = row.number, .path_id = moved);
        if (status != SJ_OK) {
            break;
        }
    }
    sj_sql_reset(sql, SJ_SQL_TIMELINE_PATH_LIST);
    return status == SJ_ENOTFOUND ? SJ_OK : status;
}

/* Edges of many functions may leave little of the budget for paths. So folding waits until the
 * number of paths has doubled since the last folding. */
static bool has_too_many(const sj_store *store, const sj_session_state *state)
{
    const uint32_t count = state->graph != NULL ? sj_callgraph_node_count(state->graph) : 0;
    return count > store->path_budget && count / 2 > state->folded_to;
}

sj_status sj_store_fold_rare_paths(sj_store *store, sj_session_state *state, sj_error *error)
{
    if (!has_too_many(store, state)) {
        return SJ_OK;
    }
    sj_path_folding folding;
    sj_status status = sj_callgraph_fold_rare(state->graph, store->path_budget / 2, &folding);
    if (status == SJ_OK) {
        status = move_shadows(state, &folding);
    }
    if (status != SJ_OK) {
        sj_path_folding_deinit(&folding);
        return sj_fail(error, status, "no memory to fold call paths");
    }
    status = move_timeline(&store->sql, state, &folding, error);
    state->totals.folded_paths += folding.paths;
    state->totals.folded_calls += folding.calls;
    state->folded_to = sj_callgraph_node_count(state->graph);
    state->is_renumbered = state->dirty = true;
    sj_path_folding_deinit(&folding);
    return status;
}
