#include "collector-server/query/scan_session.h"

#include "collector-server/query/session_clock.h"
#include "collector-server/store/sql.h"
#include "proto/base/array.h"
#include "proto/base/bisect.h"

#include <stdlib.h>

int64_t sj_scan_function_id(const sj_scan_session *session, uint32_t function)
{
    const size_t low =
        SJ_BISECT(0, session->module_count, i, session->modules[i].first <= function);
    if (low == 0) {
        return 0;
    }
    const sj_module_range *range = &session->modules[low - 1];
    return function - range->first < range->count
               ? range->first_function_id + (function - range->first)
               : 0;
}

static int add_module(void *context, sqlite3_stmt *row)
{
    sj_scan_session *session = context;
    if (sj_array_reserve(&session->modules, &session->module_capacity, session->module_count, 1,
                         sizeof(*session->modules)) != SJ_OK) {
        return SQLITE_NOMEM;
    }
    session->modules[session->module_count++] = (sj_module_range){
        .first = (uint32_t)sqlite3_column_int64(row, 0),
        .count = (uint32_t)sqlite3_column_int64(row, 1),
        .first_function_id = sqlite3_column_int64(row, 2),
    };
    return SQLITE_OK;
}

static int read_modules(sj_block_scan *scan)
{
    sj_scan_session *session = &scan->session;
    session->module_count = 0;
    sqlite3_bind_int64(scan->modules, 1, session->session_id);
    return sj_sql_scan(scan->modules, add_module, session);
}

static void add_function(sj_scan_session *session, int64_t function_id)
{
    for (size_t i = 0; i < session->module_count; ++i) {
        const sj_module_range *range = &session->modules[i];
        if (function_id < range->first_function_id ||
            function_id - range->first_function_id >= (int64_t)range->count) {
            continue;
        }
        if (session->function_count == SJ_SCAN_MAX_FUNCTIONS) {
            session->bitmap_useless = true;
            return;
        }
        session->functions[session->function_count++] =
            range->first + (uint32_t)(function_id - range->first_function_id);
    }
}

static void find_functions(sj_scan_session *session, const sj_scan_filter *filter)
{
    session->function_count = 0;
    session->bitmap_useless = false;
    if (filter->functions == NULL) {
        add_function(session, filter->function_id);
        return;
    }
    for (size_t i = 0; i < filter->function_count && !session->bitmap_useless; ++i) {
        add_function(session, filter->functions[i]);
    }
}

/* Returns the first tick whose time is `ns` or later, and UINT64_MAX if no tick is that late. Ticks
 * before the session's start have negative times, rounded towards 0. */
static uint64_t first_tick_at(const sj_scan_session *session, int64_t ns)
{
    const uint64_t start = session->started_ticks;
    if (ns > 0) {
        const uint64_t after = sj_ns_to_ticks_ceil(&session->scale, ns);
        return after > UINT64_MAX - start ? UINT64_MAX : start + after;
    }
    if (ns <= -INT64_MAX) {
        return 0;
    }
    const uint64_t before = sj_ns_to_ticks_ceil(&session->scale, -ns + 1) - 1;
    return before > start ? 0 : start - before;
}

static void convert_bounds(sj_scan_session *session, const sj_scan_filter *filter)
{
    session->first_start = first_tick_at(session, filter->first_start_ns);
    session->last_start = UINT64_MAX;
    if (filter->last_start_ns < INT64_MAX) {
        const uint64_t beyond = first_tick_at(session, filter->last_start_ns + 1);
        if (beyond == 0) {
            session->first_start = UINT64_MAX;
        }
        session->last_start = beyond == UINT64_MAX ? UINT64_MAX : beyond - 1;
    }
    /* The shown duration is the end minus the start, both rounded down. It can exceed the rounded
     * down duration by 1 ns. */
    session->min_duration = filter->min_duration_ns > 1
                                ? sj_ns_to_ticks_ceil(&session->scale, filter->min_duration_ns - 1)
                                : 0;
    session->first_end =
        filter->first_end_ns > INT64_MIN ? first_tick_at(session, filter->first_end_ns) : 0;
}

int sj_scan_session_enter(sj_block_scan *scan, int64_t session_id)
{
    sj_scan_session *session = &scan->session;
    if (session->valid && session->session_id == session_id) {
        return SQLITE_OK;
    }
    session->valid = false;
    session->session_id = session_id;
    int result = sj_session_clock_read(scan->state->database, &scan->clock, session_id,
                                       &session->scale, &session->started_ticks);
    if (result != SQLITE_OK) {
        return result;
    }
    result = read_modules(scan);
    if (result != SQLITE_OK) {
        return result;
    }
    convert_bounds(session, &scan->filter);
    find_functions(session, &scan->filter);
    session->valid = true;
    return SQLITE_OK;
}
