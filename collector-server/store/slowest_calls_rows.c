/* Reads and writes the longest calls of a session's functions, in the table slow_calls. */
#include "collector-server/store/session_state.h"

enum { LEAST_NS = 1000 };

/* Returns the session-wide id of a function in one of the session's modules, or 0. */
static uint32_t session_function(const sj_session_state *state, int64_t function_id)
{
    for (size_t i = 0; i < state->module_count; ++i) {
        const sj_module_range *module = &state->modules[i];
        const int64_t place = function_id - module->first_function_id;
        if (place >= 0 && place < (int64_t)module->function_count) {
            return module->first_function + (uint32_t)place;
        }
    }
    return 0;
}

static uint32_t stream_number(const sj_session_state *state, int64_t stream_id)
{
    for (size_t i = 0; i < state->stream_count; ++i) {
        if (state->streams[i].stream_id == stream_id) {
            return state->streams[i].number;
        }
    }
    return 0;
}

static sj_status restore_row(sj_session_state *state, const sj_slow_list_row *row)
{
    const sj_tick_clock *clock = &state->clock;
    const uint64_t mask = (UINT64_C(1) << SJ_CALL_INDEX_BITS) - 1;
    const uint32_t function = session_function(state, row->function_id);
    const sj_slow_call call = {
        .call_index = (uint64_t)row->call_id & mask,
        .stream = stream_number(state, row->call_id >> SJ_CALL_INDEX_BITS),
        .node = (uint32_t)(row->path_id & UINT32_MAX),
        .start_ticks = sj_ticks_of_ns(clock, row->start_ns),
        .duration_ticks = sj_ticks_in_ns(clock, row->duration_ns),
        .self_ticks = sj_ticks_in_ns(clock, row->self_ns),
        .ending = (uint32_t)row->ending,
        .flags = (uint32_t)row->flags,
    };
    return function == 0 || call.stream == 0
               ? SJ_ECORRUPT
               : sj_slow_calls_add(sj_callgraph_slow_calls(state->graph), function, &call);
}

sj_status sj_session_load_slow_calls(sj_statements *sql, sj_session_state *state, sj_error *error)
{
    sj_slow_calls *slow = sj_callgraph_slow_calls(state->graph);
    slow->floor_ticks = sj_ticks_in_ns(&state->clock, LEAST_NS) - 1;
    SJ_TRY(SJ_START(sql, slow_list, error, .session_id = state->session_id));
    sj_slow_list_row row;
    sj_status status;
    while ((status = sj_next_slow_list(sql, &row, error)) == SJ_OK) {
        status = restore_row(state, &row);
        if (status != SJ_OK) {
            sj_fail(error, status, "the slow calls of session %lld cannot be read back",
                    (long long)state->session_id);
            break;
        }
    }
    sj_sql_reset(sql, SJ_SQL_SLOW_LIST);
    sj_slow_calls_clean(slow);
    return status == SJ_ENOTFOUND ? SJ_OK : status;
}

/* Computes the self time as `calls` does: the self time of a call without callees is its
 * duration. */
static int64_t self_ns(const sj_tick_clock *clock, const sj_slow_call *call, int64_t duration_ns)
{
    return call->self_ticks == call->duration_ticks ? duration_ns
                                                    : sj_ticks_span_ns(clock, call->self_ticks);
}

static sj_status put_list(sj_statements *sql, sj_session_state *state, const sj_slow_list *list,
                          sj_error *error)
{
    const sj_tick_clock *clock = &state->clock;
    int64_t function_id = 0;
    if (!sj_session_function_id(state, list->function, &function_id)) {
        return sj_fail(error, SJ_ECORRUPT, "function %u has no module", list->function);
    }
    SJ_TRY(SJ_RUN(sql, slow_cut, error, .session_id = state->session_id, .function_id = function_id,
                  .last_place = list->count));
    for (uint32_t i = 0; i < list->count; ++i) {
        const sj_slow_call *call = &list->calls[i];
        const sj_stream_state *stream = sj_session_find_stream(state, call->stream);
        if (stream == NULL) {
            return sj_fail(error, SJ_ECORRUPT, "stream %u is not known", call->stream);
        }
        const int64_t start_ns = sj_ticks_at_ns(clock, call->start_ticks);
        const int64_t duration_ns =
            sj_ticks_at_ns(clock, call->start_ticks + call->duration_ticks) - start_ns;
        SJ_TRY(SJ_RUN(sql, slow_put, error, .session_id = state->session_id,
                      .function_id = function_id, .place = i + 1,
                      .call_id = sj_call_id_of((uint64_t)stream->stream_id, call->call_index),
                      .path_id = state->session_id << 32 | call->node, .start_ns = start_ns,
                      .duration_ns = duration_ns, .self_ns = self_ns(clock, call, duration_ns),
                      .ending = call->ending, .flags = call->flags));
    }
    return SJ_OK;
}

sj_status sj_session_flush_slow_calls(sj_statements *sql, sj_session_state *state, sj_error *error)
{
    sj_slow_calls *slow = sj_callgraph_slow_calls(state->graph);
    for (uint32_t i = 0; i < slow->dirty_count; ++i) {
        SJ_TRY(put_list(sql, state, &slow->lists[slow->dirty[i]], error));
    }
    sj_slow_calls_clean(slow);
    return SJ_OK;
}
