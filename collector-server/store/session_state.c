#include "collector-server/store/session_state.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES_A_NODE = 640, BYTES_A_FUNCTION = 400 }; /* histograms and room to grow included */

sj_status sj_array_grow(void **array, size_t *capacity, size_t count, size_t element_bytes)
{
    if (count < *capacity) {
        return SJ_OK;
    }
    const size_t wanted = *capacity == 0 ? 16 : *capacity * 2;
    uint8_t *moved = realloc(*array, wanted * element_bytes);
    if (moved == NULL) {
        return SJ_ENOMEM;
    }
    memset(moved + *capacity * element_bytes, 0, (wanted - *capacity) * element_bytes);
    *array = moved;
    *capacity = wanted;
    return SJ_OK;
}

static size_t place_of(const sj_number_map *map, uint64_t key)
{
    size_t place = (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (map->capacity - 1);
    while (map->values[place] != 0 && map->keys[place] != key) {
        place = (place + 1) & (map->capacity - 1);
    }
    return place;
}

static sj_status grow_map(sj_number_map *map)
{
    sj_number_map larger = {.capacity = map->capacity == 0 ? 64 : map->capacity * 2};
    larger.keys = calloc(larger.capacity, sizeof(*larger.keys));
    larger.values = calloc(larger.capacity, sizeof(*larger.values));
    if (larger.keys == NULL || larger.values == NULL) {
        free(larger.keys);
        free(larger.values);
        return SJ_ENOMEM;
    }
    for (size_t i = 0; i < map->capacity; ++i) {
        if (map->values[i] != 0) {
            const size_t place = place_of(&larger, map->keys[i]);
            larger.keys[place] = map->keys[i];
            larger.values[place] = map->values[i];
        }
    }
    larger.count = map->count;
    free(map->keys);
    free(map->values);
    *map = larger;
    return SJ_OK;
}

/* Finds the entry of a key, or takes `next` for it. */
static sj_status map_number(sj_number_map *map, uint64_t key, size_t next, size_t *entry)
{
    if ((map->count + 1) * 2 > map->capacity) {
        SJ_TRY(grow_map(map));
    }
    const size_t place = place_of(map, key);
    if (map->values[place] == 0) {
        map->keys[place] = key;
        map->values[place] = (uint32_t)next + 1;
        map->count++;
    }
    *entry = map->values[place] - 1;
    return SJ_OK;
}

static sj_status load_streams(sj_statements *sql, sj_session_state *state, sj_error *error)
{
    SJ_TRY(sj_sql_bind(sql, SJ_SQL_STREAM_LIST, error, "i", state->session_id));
    sqlite3_stmt *row = sj_sql_row(sql, SJ_SQL_STREAM_LIST);
    sj_status status;
    while ((status = sj_sql_step(sql, SJ_SQL_STREAM_LIST, error)) == SJ_OK) {
        status = sj_array_grow((void **)&state->streams, &state->stream_capacity,
                               state->stream_count, sizeof(*state->streams));
        if (status != SJ_OK) {
            break;
        }
        state->streams[state->stream_count++] = (sj_stream_state){
            .stream_id = sqlite3_column_int64(row, 0),
            .number = (uint32_t)sqlite3_column_int64(row, 1),
            .calls = (uint64_t)sqlite3_column_int64(row, 2),
            .entered = sqlite3_column_type(row, 3) != SQLITE_NULL,
            .first_enter_ns = sqlite3_column_int64(row, 3),
            .left = sqlite3_column_type(row, 4) != SQLITE_NULL,
            .last_leave_ns = sqlite3_column_int64(row, 4),
            .max_depth = (uint32_t)sqlite3_column_int64(row, 5),
            .ended = sqlite3_column_int(row, 6) != 0,
        };
    }
    sj_sql_reset(sql, SJ_SQL_STREAM_LIST);
    return status == SJ_ENOTFOUND ? SJ_OK : status;
}

sj_status sj_session_load_modules(sj_statements *sql, sj_session_state *state, sj_error *error)
{
    state->module_count = 0;
    SJ_TRY(sj_sql_bind(sql, SJ_SQL_SESSION_MODULE_LIST, error, "i", state->session_id));
    sqlite3_stmt *row = sj_sql_row(sql, SJ_SQL_SESSION_MODULE_LIST);
    sj_status status;
    while ((status = sj_sql_step(sql, SJ_SQL_SESSION_MODULE_LIST, error)) == SJ_OK) {
        status = sj_array_grow((void **)&state->modules, &state->module_capacity,
                               state->module_count, sizeof(*state->modules));
        if (status != SJ_OK) {
            break;
        }
        state->modules[state->module_count++] = (sj_module_range){
            .number = (uint32_t)sqlite3_column_int64(row, 0),
            .first_function = (uint32_t)sqlite3_column_int64(row, 1),
            .function_count = (uint32_t)sqlite3_column_int64(row, 2),
            .first_function_id = sqlite3_column_int64(row, 3),
        };
    }
    sj_sql_reset(sql, SJ_SQL_SESSION_MODULE_LIST);
    state->modules_loaded = status == SJ_ENOTFOUND;
    return status == SJ_ENOTFOUND ? SJ_OK : status;
}

sj_status sj_session_state_load(sj_statements *sql, const sj_session_id *id, uint32_t most_paths,
                                sj_session_state **state, sj_error *error)
{
    const sj_slice uuid = {.data = id->bytes, .size = sizeof(id->bytes)};
    SJ_TRY(sj_sql_bind(sql, SJ_SQL_SESSION_FIND, error, "b", &uuid));
    SJ_TRY(sj_sql_step(sql, SJ_SQL_SESSION_FIND, error));
    sj_session_state *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        sj_sql_reset(sql, SJ_SQL_SESSION_FIND);
        return sj_fail(error, SJ_ENOMEM, "no memory for a session");
    }
    sqlite3_stmt *row = sj_sql_row(sql, SJ_SQL_SESSION_FIND);
    made->id = *id;
    made->most_paths = most_paths;
    made->session_id = sqlite3_column_int64(row, 0);
    made->clock.started_ticks = (uint64_t)sqlite3_column_int64(row, 1);
    made->clock.numerator = (uint64_t)sqlite3_column_int64(row, 2);
    made->clock.denominator = (uint64_t)sqlite3_column_int64(row, 3);
    made->sums = (sj_session_sums){.blocks = (uint64_t)sqlite3_column_int64(row, 5),
                                   .bytes = (uint64_t)sqlite3_column_int64(row, 6),
                                   .calls = (uint64_t)sqlite3_column_int64(row, 7),
                                   .events = (uint64_t)sqlite3_column_int64(row, 8),
                                   .lost_calls = (uint64_t)sqlite3_column_int64(row, 9),
                                   .lost_events = (uint64_t)sqlite3_column_int64(row, 10)};
    made->unsummed_in_store = sqlite3_column_int64(row, 11);
    made->is_apart = sqlite3_column_int(row, 12) != 0;
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
    free(state->shadows);
    free(state->functions);
    free(state->edges);
    free(state->function_map.keys);
    free(state->function_map.values);
    free(state->edge_map.keys);
    free(state->edge_map.values);
    state->graph = NULL;
    state->shadows = NULL;
    state->functions = NULL;
    state->edges = NULL;
    state->shadow_count = state->shadow_capacity = 0;
    state->function_count = state->function_capacity = 0;
    state->edge_count = state->edge_capacity = 0;
    state->function_map = state->edge_map = (sj_number_map){0};
}

static void free_parts(sj_session_state *state)
{
    sj_session_drop_graph(state);
    free(state->streams);
    free(state->modules);
    free(state->late_blocks);
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
    state->late_blocks = NULL;
    free_parts(state);
    *state = *loaded;
    free(loaded);
    state->next_in_bucket = before.next_in_bucket;
    state->last_used = before.last_used;
    state->is_busy = before.is_busy;
    state->is_anew = before.is_anew;
    state->is_guest = before.is_guest;
    state->sum_now = before.sum_now;
    state->is_apart = before.is_apart;
    state->apart_until_ns = before.apart_until_ns;
    state->dirty_since_ns = before.dirty_since_ns;
    state->unsummed_block = before.unsummed_block;
    state->late_blocks = before.late_blocks;
    state->late_count = before.late_count;
    state->late_capacity = before.late_capacity;
}

size_t sj_session_state_bytes(const sj_session_state *state)
{
    const size_t nodes = state->graph != NULL ? sj_callgraph_node_count(state->graph) : 0;
    return sizeof(*state) + nodes * BYTES_A_NODE +
           state->stream_capacity * sizeof(*state->streams) +
           state->late_capacity * sizeof(*state->late_blocks) +
           state->module_capacity * sizeof(*state->modules) +
           state->shadow_capacity * sizeof(*state->shadows) +
           state->function_capacity * sizeof(*state->functions) +
           state->function_count * BYTES_A_FUNCTION + state->edge_capacity * sizeof(*state->edges) +
           (state->function_map.capacity + state->edge_map.capacity) * 12;
}

bool sj_session_function_id(const sj_session_state *state, uint32_t function, int64_t *id)
{
    size_t low = 0;
    size_t high = state->module_count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const sj_module_range *range = &state->modules[middle];
        if (function < range->first_function) {
            high = middle;
        } else if (function - range->first_function >= range->function_count) {
            low = middle + 1;
        } else {
            *id = range->first_function_id + (function - range->first_function);
            return true;
        }
    }
    return false;
}

static size_t lower_bound(const sj_session_state *state, uint32_t number)
{
    size_t low = 0;
    size_t high = state->stream_count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (state->streams[middle].number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
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
    SJ_TRY(sj_array_grow((void **)&state->streams, &state->stream_capacity, state->stream_count,
                         sizeof(*state->streams)));
    SJ_TRY(sj_sql_get_number(sql, SJ_SQL_STREAM_ADD, &stream_id, error, "ii", state->session_id,
                             (int64_t)number));
    const size_t place = lower_bound(state, number);
    memmove(&state->streams[place + 1], &state->streams[place],
            (state->stream_count - place) * sizeof(*state->streams));
    state->streams[place] = (sj_stream_state){.number = number, .stream_id = stream_id};
    state->stream_count++;
    *stream = &state->streams[place];
    return SJ_OK;
}

static sj_status find_function_sums(sj_session_state *state, uint32_t function,
                                    sj_function_sums **sums)
{
    size_t entry = 0;
    SJ_TRY(sj_array_grow((void **)&state->functions, &state->function_capacity,
                         state->function_count, sizeof(*state->functions)));
    SJ_TRY(map_number(&state->function_map, function, state->function_count, &entry));
    if (entry == state->function_count) {
        state->functions[state->function_count++] =
            (sj_function_sums){.function = function, .min_ticks = UINT64_MAX};
    }
    *sums = &state->functions[entry];
    return SJ_OK;
}

static sj_status find_edge_sums(sj_session_state *state, uint32_t caller, uint32_t callee,
                                sj_edge_sums **sums)
{
    size_t entry = 0;
    SJ_TRY(sj_array_grow((void **)&state->edges, &state->edge_capacity, state->edge_count,
                         sizeof(*state->edges)));
    SJ_TRY(
        map_number(&state->edge_map, (uint64_t)caller << 32 | callee, state->edge_count, &entry));
    if (entry == state->edge_count) {
        state->edges[state->edge_count++] = (sj_edge_sums){.caller = caller, .callee = callee};
    }
    *sums = &state->edges[entry];
    return SJ_OK;
}

sj_status sj_session_fold_node(sj_session_state *state, uint32_t node)
{
    while (state->shadow_count <= node) {
        SJ_TRY(sj_array_grow((void **)&state->shadows, &state->shadow_capacity, state->shadow_count,
                             sizeof(*state->shadows)));
        state->shadows[state->shadow_count++] = (sj_node_shadow){0};
    }
    const sj_path_node *now = sj_callgraph_node(state->graph, node);
    const sj_path_node *parent = sj_callgraph_node(state->graph, now->parent);
    sj_node_shadow *before = &state->shadows[node];
    sj_function_sums *function = NULL;
    sj_edge_sums *edge = NULL;
    SJ_TRY(find_function_sums(state, now->function, &function));
    SJ_TRY(find_edge_sums(state, now->parent == 0 ? 0 : parent->function, now->function, &edge));
    function->calls += now->calls - before->calls;
    if (!now->recursive) { /* an activation below another of its kind is part of that one's time */
        function->total_ticks += now->total_ticks - before->total_ticks;
    }
    function->self_ticks += now->self_ticks - before->self_ticks;
    function->unwound += now->unwound - before->unwound;
    function->untrusted += now->untrusted - before->untrusted;
    function->min_ticks =
        now->min_ticks < function->min_ticks ? now->min_ticks : function->min_ticks;
    function->max_ticks =
        now->max_ticks > function->max_ticks ? now->max_ticks : function->max_ticks;
    function->dirty = true;
    edge->calls += now->calls - before->calls;
    edge->total_ticks += now->total_ticks - before->total_ticks;
    edge->self_ticks += now->self_ticks - before->self_ticks;
    edge->dirty = true;
    before->calls = now->calls;
    before->total_ticks = now->total_ticks;
    before->self_ticks = now->self_ticks;
    before->unwound = now->unwound;
    before->untrusted = now->untrusted;
    return SJ_OK;
}

static sj_status restore_row(sj_session_state *state, sqlite3_stmt *row)
{
    const int64_t parent = sqlite3_column_int64(row, 1);
    const void *bytes = sqlite3_column_blob(row, 8);
    sj_reader reader = sj_reader_of(bytes, (size_t)sqlite3_column_bytes(row, 8));
    sj_path_node node = {.parent = (uint32_t)(parent & UINT32_MAX),
                         .depth = (uint32_t)sqlite3_column_int64(row, 2),
                         .recursive = sqlite3_column_int(row, 3) != 0,
                         .calls = (uint64_t)sqlite3_column_int64(row, 4),
                         .unwound = (uint64_t)sqlite3_column_int64(row, 5),
                         .untrusted = (uint64_t)sqlite3_column_int64(row, 6)};
    node.function = (uint32_t)sj_read_varint(&reader);
    node.total_ticks = sj_read_varint(&reader);
    node.self_ticks = sj_read_varint(&reader);
    node.min_ticks = sj_read_varint(&reader);
    node.max_ticks = sj_read_varint(&reader);
    const uint32_t number = (uint32_t)(sqlite3_column_int64(row, 0) & UINT32_MAX);
    if (reader.bad || number != sj_callgraph_node_count(state->graph)) {
        return SJ_ECORRUPT;
    }
    const sj_slice histogram = {.data = sqlite3_column_blob(row, 7),
                                .size = (size_t)sqlite3_column_bytes(row, 7)};
    if (histogram.size != 0) {
        SJ_TRY(sj_histogram_decode(histogram, &node.histogram));
    }
    sj_status status = sj_callgraph_restore(state->graph, &node);
    sj_histogram_deinit(&node.histogram);
    if (status == SJ_OK) {
        status = sj_session_fold_node(state, number);
    }
    if (status == SJ_OK) {
        state->shadows[number].stored = true;
        state->stored_nodes = number + 1;
    }
    return status;
}

static void clear_dirty_sums(sj_session_state *state)
{
    for (size_t i = 0; i < state->function_count; ++i) {
        state->functions[i].dirty = false;
    }
    for (size_t i = 0; i < state->edge_count; ++i) {
        state->edges[i].dirty = false;
    }
}

sj_status sj_session_load_graph(sj_statements *sql, sj_session_state *state, sj_error *error)
{
    if (state->graph != NULL) {
        return SJ_OK;
    }
    SJ_TRY(sj_callgraph_new(&state->graph));
    sj_callgraph_limit(state->graph, state->most_paths);
    const int64_t base = state->session_id << 32;
    SJ_TRY(sj_sql_bind(sql, SJ_SQL_PATH_LIST, error, "ii", base, base + ((int64_t)1 << 32)));
    sqlite3_stmt *row = sj_sql_row(sql, SJ_SQL_PATH_LIST);
    sj_status status;
    while ((status = sj_sql_step(sql, SJ_SQL_PATH_LIST, error)) == SJ_OK) {
        status = restore_row(state, row);
        if (status != SJ_OK) {
            sj_fail(error, status, "the call paths of session %lld cannot be read back",
                    (long long)state->session_id);
            break;
        }
    }
    sj_sql_reset(sql, SJ_SQL_PATH_LIST);
    clear_dirty_sums(state);
    if (status == SJ_ENOTFOUND) {
        status = sj_session_load_slow_calls(sql, state, error);
    }
    if (status == SJ_OK) {
        return SJ_OK;
    }
    sj_session_drop_graph(state);
    return status;
}
