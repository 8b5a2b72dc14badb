#include "collector-server/store/session_state.h"
#include "proto/base/array.h"
#include "proto/base/bisect.h"

#include <stdlib.h>
#include <string.h>

/* estimates that include histograms and spare capacity */
enum { BYTES_A_NODE = 640, BYTES_A_FUNCTION = 400 };

/* Finds the index of a key in its array, or adds the key with the index `next`. `sub` is 1, because
 * key 0 with sub 0 means an empty entry. */
static sj_status find_index(sj_hash_map *map, uint64_t key, size_t next, size_t *index)
{
    const sj_hash_entry *known = sj_hash_map_find(map, key, 1);
    *index = known != NULL ? known->first : next;
    return known != NULL
               ? SJ_OK
               : sj_hash_map_put(map,
                                 &(sj_hash_entry){.key = key, .sub = 1, .first = (uint32_t)next});
}

static sj_status load_streams(sj_statements *sql, sj_session_state *state, sj_error *error)
{
    SJ_TRY(SJ_START(sql, stream_list, error, .session_id = state->session_id));
    sj_stream_list_row row;
    sj_status status;
    while ((status = sj_next_stream_list(sql, &row, error)) == SJ_OK) {
        status = sj_array_reserve(&state->streams, &state->stream_capacity, state->stream_count, 1,
                                  sizeof(*state->streams));
        if (status != SJ_OK) {
            break;
        }
        state->streams[state->stream_count++] = (sj_stream_state){
            .stream_id = row.stream_id,
            .number = (uint32_t)row.number,
            .calls = row.calls,
            .entered = row.has_first_enter_ns,
            .first_enter_ns = row.first_enter_ns,
            .left = row.has_last_leave_ns,
            .last_leave_ns = row.last_leave_ns,
            .max_depth = (uint32_t)row.max_depth,
            .ended = row.ended != 0,
        };
    }
    sj_sql_reset(sql, SJ_SQL_STREAM_LIST);
    return status == SJ_ENOTFOUND ? SJ_OK : status;
}

sj_status sj_session_load_modules(sj_statements *sql, sj_session_state *state, sj_error *error)
{
    state->module_count = 0;
    SJ_TRY(SJ_START(sql, session_module_list, error, .session_id = state->session_id));
    sj_session_module_list_row row;
    sj_status status;
    while ((status = sj_next_session_module_list(sql, &row, error)) == SJ_OK) {
        status = sj_array_reserve(&state->modules, &state->module_capacity, state->module_count, 1,
                                  sizeof(*state->modules));
        if (status != SJ_OK) {
            break;
        }
        state->modules[state->module_count++] = (sj_module_range){
            .number = (uint32_t)row.number,
            .first_function = (uint32_t)row.first_function,
            .function_count = (uint32_t)row.function_count,
            .first_function_id = row.first_function_id,
        };
    }
    sj_sql_reset(sql, SJ_SQL_SESSION_MODULE_LIST);
    state->modules_loaded = status == SJ_ENOTFOUND;
    return status == SJ_ENOTFOUND ? SJ_OK : status;
}

/* Copies a blob if it has exactly `size` bytes. */
static void copy_bytes(sj_slice blob, uint8_t *bytes, size_t size)
{
    if (blob.size == size) {
        memcpy(bytes, blob.data, size);
    }
}

sj_status sj_session_state_load(sj_statements *sql, const sj_session_id *id, uint32_t most_paths,
                                sj_session_state **state, sj_error *error)
{
    const sj_slice uuid = {.data = id->bytes, .size = sizeof(id->bytes)};
    sj_session_find_row row;
    SJ_TRY(SJ_FIND(sql, session_find, &row, error, .uuid = uuid));
    sj_session_state *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        sj_sql_reset(sql, SJ_SQL_SESSION_FIND);
        return sj_fail(error, SJ_ENOMEM, "no memory for a session");
    }
    made->id = *id;
    made->most_paths = most_paths;
    made->session_id = row.session_id;
    made->clock.started_ticks = row.started_ticks;
    made->clock.numerator = row.tick_ns_numerator;
    made->clock.denominator = row.tick_ns_denominator;
    made->totals = (sj_session_totals){.blocks = row.blocks,
                                       .bytes = row.bytes,
                                       .calls = row.calls,
                                       .events = row.events,
                                       .lost_calls = row.lost_calls,
                                       .lost_events = row.lost_events,
                                       .folded_paths = row.folded_paths,
                                       .folded_calls = row.folded_calls};
    made->row_bytes = row.bytes;
    made->stored_uncounted_from = row.uncounted_from;
    made->is_quarantined = row.is_quarantined != 0;
    copy_bytes(row.device_uuid, made->owner.device, sizeof(made->owner.device));
    copy_bytes(row.secret_digest, made->owner.secret, sizeof(made->owner.secret));
    sj_sql_reset(sql, SJ_SQL_SESSION_FIND);
    sj_status status = load_streams(sql, made, error);
    if (status == SJ_OK) {
        status = sj_session_load_modules(sql, made, error);
    }
    if (status != SJ_OK) {
        sj_session_state_free(made);
        return status;
    }
    *state = made;
    return SJ_OK;
}

void sj_session_drop_graph(sj_session_state *state)
{
    sj_callgraph_free(state->graph);
    sj_call_estimates_free(state->estimates);
    state->estimates = NULL;
    free(state->shadows);
    free(state->functions);
    free(state->edges);
    sj_hash_map_deinit(&state->function_map);
    sj_hash_map_deinit(&state->edge_map);
    state->graph = NULL;
    state->shadows = NULL;
    state->functions = NULL;
    state->edges = NULL;
    state->shadow_count = state->shadow_capacity = 0;
    state->function_count = state->function_capacity = 0;
    state->edge_count = state->edge_capacity = 0;
    state->folded_to = 0;
    state->is_renumbered = false;
}

static void free_parts(sj_session_state *state)
{
    sj_session_drop_graph(state);
    free(state->streams);
    free(state->modules);
    free(state->uncounted_blocks);
}

void sj_session_state_free(sj_session_state *state)
{
    if (state == NULL) {
        return;
    }
    free_parts(state);
    free(state);
}

void sj_session_state_replace(sj_session_state *state, sj_session_state *loaded)
{
    const sj_session_state before = *state;
    state->uncounted_blocks = NULL;
    free_parts(state);
    *state = *loaded;
    free(loaded);
    state->next_in_bucket = before.next_in_bucket;
    state->last_used = before.last_used;
    state->seen_in_batch = before.seen_in_batch;
    state->is_busy = before.is_busy;
    state->is_rebuild = before.is_rebuild;
    state->is_borrowed = before.is_borrowed;
    state->write_now = before.write_now;
    state->has_ended = before.has_ended;
    state->is_quarantined = before.is_quarantined;
    state->quarantined_until_ns = before.quarantined_until_ns;
    state->dirty_since_ns = before.dirty_since_ns;
    state->first_uncounted_block = before.first_uncounted_block;
    state->uncounted_blocks = before.uncounted_blocks;
    state->uncounted_count = before.uncounted_count;
    state->uncounted_capacity = before.uncounted_capacity;
}

size_t sj_session_state_bytes(const sj_session_state *state)
{
    const size_t nodes = state->graph != NULL ? sj_callgraph_node_count(state->graph) : 0;
    const size_t costs = state->graph != NULL ? sj_callgraph_cost_count(state->graph) : 0;
    return sizeof(*state) + nodes * BYTES_A_NODE + costs * sizeof(sj_path_cost) +
           state->stream_capacity * sizeof(*state->streams) +
           state->uncounted_capacity * sizeof(*state->uncounted_blocks) +
           state->module_capacity * sizeof(*state->modules) +
           state->shadow_capacity * sizeof(*state->shadows) +
           state->function_capacity * sizeof(*state->functions) +
           state->function_count * BYTES_A_FUNCTION + state->edge_capacity * sizeof(*state->edges) +
           (state->function_map.capacity + state->edge_map.capacity) * sizeof(sj_hash_entry) +
           sj_call_estimates_bytes(state->estimates);
}

bool sj_session_function_id(const sj_session_state *state, uint32_t function, int64_t *id)
{
    const size_t after =
        SJ_BISECT(0, state->module_count, i, state->modules[i].first_function <= function);
    const sj_module_range *range = after != 0 ? &state->modules[after - 1] : NULL;
    if (range == NULL || function - range->first_function >= range->function_count) {
        return false;
    }
    *id = range->first_function_id + (function - range->first_function);
    return true;
}

static size_t lower_bound(const sj_session_state *state, uint32_t number)
{
    return SJ_BISECT(0, state->stream_count, i, state->streams[i].number < number);
}

sj_stream_state *sj_session_find_stream(sj_session_state *state, uint32_t number)
{
    const size_t place = lower_bound(state, number);
    return place < state->stream_count && state->streams[place].number == number
               ? &state->streams[place]
               : NULL;
}

sj_status sj_session_add_stream(sj_statements *sql, sj_session_state *state, uint32_t number,
                                sj_stream_state **stream, sj_error *error)
{
    *stream = sj_session_find_stream(state, number);
    if (*stream != NULL) {
        return SJ_OK;
    }
    int64_t stream_id = 0;
    SJ_TRY(sj_array_reserve(&state->streams, &state->stream_capacity, state->stream_count, 1,
                            sizeof(*state->streams)));
    SJ_TRY(SJ_GET(sql, stream_add, &stream_id, error, .session_id = state->session_id,
                  .number = number));
    const size_t place = lower_bound(state, number);
    memmove(&state->streams[place + 1], &state->streams[place],
            (state->stream_count - place) * sizeof(*state->streams));
    state->streams[place] = (sj_stream_state){.number = number, .stream_id = stream_id};
    state->stream_count++;
    *stream = &state->streams[place];
    return SJ_OK;
}

sj_status sj_session_forget_new_streams(sj_statements *sql, sj_session_state *state,
                                        sj_error *error)
{
    int64_t highest = 0;
    size_t kept = 0;
    SJ_TRY(sj_get_stream_highest(sql, &highest, error));
    for (size_t i = 0; i < state->stream_count; ++i) {
        if (state->streams[i].stream_id <= highest) {
            state->streams[kept++] = state->streams[i];
        }
    }
    state->stream_count = kept;
    return SJ_OK;
}

static sj_status find_function_totals(sj_session_state *state, uint32_t function,
                                      sj_function_totals **totals)
{
    size_t entry = 0;
    SJ_TRY(sj_array_reserve(&state->functions, &state->function_capacity, state->function_count, 1,
                            sizeof(*state->functions)));
    SJ_TRY(find_index(&state->function_map, function, state->function_count, &entry));
    if (entry == state->function_count) {
        state->functions[state->function_count++] =
            (sj_function_totals){.function = function, .min_ticks = UINT64_MAX};
    }
    *totals = &state->functions[entry];
    return SJ_OK;
}

static sj_status find_edge_totals(sj_session_state *state, uint32_t caller, uint32_t callee,
                                  sj_edge_totals **totals)
{
    size_t entry = 0;
    SJ_TRY(sj_array_reserve(&state->edges, &state->edge_capacity, state->edge_count, 1,
                            sizeof(*state->edges)));
    SJ_TRY(
        find_index(&state->edge_map, (uint64_t)caller << 32 | callee, state->edge_count, &entry));
    if (entry == state->edge_count) {
        state->edges[state->edge_count++] = (sj_edge_totals){.caller = caller, .callee = callee};
    }
    *totals = &state->edges[entry];
    return SJ_OK;
}

/* True if no call took the path of this node, and it exists only for folded paths below it. */
static bool is_only_above_rare(const sj_callgraph *graph, const sj_path_node *node)
{
    sj_path_node root = *node;
    while (node->calls == 0 && root.parent != 0) {
        root = sj_callgraph_node(graph, root.parent);
    }
    return node->calls == 0 && root.rare;
}

sj_status sj_session_fold_node(sj_session_state *state, uint32_t node)
{
    while (state->shadow_count <= node) {
        SJ_TRY(sj_array_reserve(&state->shadows, &state->shadow_capacity, state->shadow_count, 1,
                                sizeof(*state->shadows)));
        state->shadows[state->shadow_count++] = (sj_node_shadow){0};
    }
    const sj_path_node now = sj_callgraph_node(state->graph, node);
    const sj_path_node parent = sj_callgraph_node(state->graph, now.parent);
    sj_node_shadow *before = &state->shadows[node];
    sj_function_totals *function = NULL;
    sj_edge_totals *edge = NULL;
    if (now.rare || is_only_above_rare(state->graph, &now)) { /* not a path of calls */
        return SJ_OK;
    }
    SJ_TRY(find_function_totals(state, now.function, &function));
    SJ_TRY(find_edge_totals(state, now.parent == 0 ? 0 : parent.function, now.function, &edge));
    function->calls += now.calls - before->calls;
    if (!now.recursive) { /* the time of a recursive call is part of the outer call's time */
        function->total_ticks += now.total_ticks - before->total_ticks;
    }
    function->self_ticks += now.self_ticks - before->self_ticks;
    function->unwound += now.unwound - before->unwound;
    function->untrusted += now.untrusted - before->untrusted;
    function->min_ticks = now.min_ticks < function->min_ticks ? now.min_ticks : function->min_ticks;
    function->max_ticks = now.max_ticks > function->max_ticks ? now.max_ticks : function->max_ticks;
    function->dirty = true;
    edge->calls += now.calls - before->calls;
    if (before->edge == 0) {
        before->edge = sj_callgraph_is_nested_edge(state->graph, node) ? 2 : 1;
    }
    if (before->edge == 1) {
        edge->total_ticks += now.total_ticks - before->total_ticks;
    }
    edge->self_ticks += now.self_ticks - before->self_ticks;
    edge->dirty = true;
    before->calls = now.calls;
    before->total_ticks = now.total_ticks;
    before->self_ticks = now.self_ticks;
    before->unwound = now.unwound;
    before->untrusted = now.untrusted;
    return SJ_OK;
}
