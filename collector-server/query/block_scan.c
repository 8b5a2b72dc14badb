/* Design notes. The scan visits streams in the order of their ids. In a stream, two indexes of the
 * table `blocks` turn the filter's limits on times and call ids into a range of the column
 * `first_call`. Further tests read small columns of a block; its bytes are read last. Ends of calls
 * in later blocks: see late_exits.h. */
#include "collector-server/query/block_scan.h"

#include "collector-server/query/scan_contents.h"
#include "collector-server/query/scan_outline.h"
#include "collector-server/query/scan_session.h"
#include "collector-server/store/database.h"
#include "collector-server/store/deferred_exits.h"
#include "collector-server/store/function_bitmap.h"
#include "collector-server/store/sql.h"
#include "proto/base/bisect.h"
#include "schema/queries/query/block_scan.h"

#include <stdlib.h>

const sj_scan_filter sj_scan_everything = {
    .first_session = INT64_MIN,
    .last_session = INT64_MAX,
    .first_stream = INT64_MIN,
    .last_stream = INT64_MAX,
    .first_call = INT64_MIN,
    .last_call = INT64_MAX,
    .first_start_ns = INT64_MIN,
    .last_start_ns = INT64_MAX,
    .min_duration_ns = INT64_MIN,
    .first_end_ns = INT64_MIN,
    .min_depth = INT64_MIN,
    .max_depth = INT64_MAX,
};

static const char streams_sql[] =
    "SELECT stream_id, session_id, thread_id FROM streams "
    "WHERE stream_id BETWEEN ?1 AND ?2 AND session_id BETWEEN ?3 AND ?4 "
    "AND (?5 = 0 OR thread_id = ?6) ORDER BY stream_id";

static const char contents_sql[] =
    "SELECT functions, storage, data FROM blocks WHERE block_id = ?1";

static const char longest_sql[] =
    "SELECT late, first_ticks FROM blocks WHERE stream_id = ?1 AND kind = 1 "
    "AND late IS NOT NULL AND max_duration_ticks >= ?2";

static const char stacks_sql[] =
    "SELECT storage, data FROM blocks WHERE stream_id = ?1 AND kind = 2 AND first_event = ?2 "
    "AND quarantined IS NULL";

static const char outlines_sql[] =
    "SELECT floor_ticks, calls FROM block_outlines WHERE block_id = ?1";

static const char modules_sql[] =
    "SELECT s.first_function, s.function_count, m.first_function_id FROM session_modules AS s "
    "JOIN modules AS m ON m.module_id = s.module_id WHERE s.session_id = ?1 "
    "ORDER BY s.first_function";

static sj_status claim_decoder(sj_block_scan *scan)
{
    scan->decoder = scan->state->idle_decoder;
    scan->state->idle_decoder = NULL;
    return scan->decoder != NULL ? SJ_OK : sj_block_decoder_new(&scan->decoder);
}

static void return_decoder(sj_block_scan *scan)
{
    if (scan->decoder != NULL && scan->state->idle_decoder == NULL) {
        scan->state->idle_decoder = scan->decoder;
    } else {
        sj_block_decoder_free(scan->decoder);
    }
    scan->decoder = NULL;
}

int sj_block_scan_open(sj_block_scan *scan, sj_query_state *state)
{
    *scan = (sj_block_scan){.state = state};
    const struct {
        const char *sql;
        sqlite3_stmt **statement;
    } statements[] = {
        {streams_sql, &scan->streams},
        {sj_block_scan_blocks_sql, &scan->blocks},
        {sj_block_scan_bounds_sql, &scan->bounds},
        {modules_sql, &scan->modules},
        {stacks_sql, &scan->stacks},
        {longest_sql, &scan->longest},
        {sj_block_scan_outlasting_sql, &scan->outlasting},
        {outlines_sql, &scan->outlines},
        {contents_sql, &scan->contents},
    };
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); ++i) {
        const int result =
            sqlite3_prepare_v3(state->database, statements[i].sql, -1, SQLITE_PREPARE_PERSISTENT,
                               statements[i].statement, NULL);
        if (result != SQLITE_OK) {
            return result;
        }
    }
    const int late_result = sj_late_exits_open(&scan->late, state->database);
    if (late_result != SQLITE_OK) {
        return late_result;
    }
    return sj_block_files_new(state->database, "main", &scan->files) == SJ_OK &&
                   sj_block_files_new(state->database, "main", &scan->stack_files) == SJ_OK &&
                   claim_decoder(scan) == SJ_OK
               ? SQLITE_OK
               : SQLITE_NOMEM;
}

static int64_t clamp_ticks(uint64_t ticks)
{
    return ticks > INT64_MAX ? INT64_MAX : (int64_t)ticks;
}

/* Writes the filter's range of start times, in ticks. Returns false if the filter limits times in
 * several sessions: their clocks differ. */
static bool find_window(sj_block_scan *scan, int64_t *first, int64_t *last)
{
    const sj_scan_filter *filter = &scan->filter;
    *first = 0;
    *last = INT64_MAX;
    if (filter->first_start_ns == sj_scan_everything.first_start_ns &&
        filter->last_start_ns == sj_scan_everything.last_start_ns) {
        return true;
    }
    if (filter->first_session != filter->last_session ||
        sj_scan_session_enter(scan, filter->first_session) != SQLITE_OK) {
        return false;
    }
    *first = clamp_ticks(scan->session.first_start);
    *last = clamp_ticks(scan->session.last_start);
    return true;
}

/* Returns about how many blocks the scan will visit, for progress. Returns 0 if that is not known,
 * for example in a scan for single calls. */
static uint64_t count_blocks(sj_block_scan *scan)
{
    const sj_scan_filter *filter = &scan->filter;
    sqlite3_stmt *row = NULL;
    uint64_t count = 0;
    int64_t first;
    int64_t last;
    if (!sj_progress_is_watched() || filter->first_call > sj_scan_everything.first_call ||
        filter->last_call < sj_scan_everything.last_call || !find_window(scan, &first, &last)) {
        return 0;
    }
    if (sqlite3_prepare_v2(scan->state->database, sj_block_scan_count_sql, -1, &row, NULL) ==
        SQLITE_OK) {
        sqlite3_bind_int64(row, 1, filter->first_stream);
        sqlite3_bind_int64(row, 2, filter->last_stream);
        sqlite3_bind_int64(row, 3, filter->first_session);
        sqlite3_bind_int64(row, 4, filter->last_session);
        sqlite3_bind_int(row, 5, filter->by_thread);
        sqlite3_bind_int64(row, 6, filter->thread_id);
        sqlite3_bind_int64(row, 7, first);
        sqlite3_bind_int64(row, 8, last);
        count = sqlite3_step(row) == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(row, 0) : 0;
    }
    sqlite3_finalize(row);
    return count;
}

static void begin_progress(sj_block_scan *scan)
{
    scan->blocks_begun = 0;
    scan->work = sj_progress_begin(count_blocks(scan));
}

static void end_progress(sj_block_scan *scan)
{
    sj_progress_end(scan->work);
    scan->work = 0;
}

void sj_block_scan_close(sj_block_scan *scan)
{
    end_progress(scan);
    sqlite3_finalize(scan->streams);
    sqlite3_finalize(scan->blocks);
    sqlite3_finalize(scan->bounds);
    sj_late_exits_close(&scan->late);
    sqlite3_finalize(scan->longest);
    sqlite3_finalize(scan->outlasting);
    sqlite3_finalize(scan->clock);
    sqlite3_finalize(scan->modules);
    sqlite3_finalize(scan->stacks);
    sqlite3_finalize(scan->outlines);
    sqlite3_finalize(scan->contents);
    sj_block_files_free(scan->files);
    sj_block_files_free(scan->stack_files);
    return_decoder(scan);
    if (scan->stack_decoder != NULL) {
        sj_block_decoder_free(scan->stack_decoder);
    }
    sj_block_rows_deinit(&scan->rows);
    free(scan->session.modules);
    free(scan->function_ids);
    free(scan->function_matches);
    free(scan->long_calls);
    free(scan->outlasting_calls);
    free(scan->outline_functions);
}

bool sj_scan_filter_matches(const sj_scan_filter *filter, int64_t function_id)
{
    if (!filter->by_function) {
        return true;
    }
    if (filter->functions == NULL) {
        return function_id != 0 && function_id == filter->function_id;
    }
    const size_t low = SJ_BISECT(0, filter->function_count, i, filter->functions[i] < function_id);
    return low < filter->function_count && filter->functions[low] == function_id;
}

/* Returns the stream of a call id, -1 for an id below all calls. */
static int64_t clamp_stream(int64_t call_id)
{
    return call_id < 0 ? -1 : call_id >> SJ_CALL_INDEX_BITS;
}

int sj_block_scan_start(sj_block_scan *scan, const sj_scan_filter *filter, unsigned want)
{
    end_progress(scan);
    scan->filter = *filter;
    scan->want = want;
    scan->in_stream = false;
    scan->session.valid = false;
    sj_scan_contents_leave(scan);
    sqlite3_reset(scan->blocks);
    sqlite3_reset(scan->streams);
    int64_t first = filter->first_stream;
    int64_t last = filter->last_stream;
    if (filter->first_call > 0 && clamp_stream(filter->first_call) > first) {
        first = clamp_stream(filter->first_call);
    }
    if (filter->last_call < INT64_MAX && clamp_stream(filter->last_call) < last) {
        last = clamp_stream(filter->last_call);
    }
    sqlite3_bind_int64(scan->streams, 1, first);
    sqlite3_bind_int64(scan->streams, 2, last);
    sqlite3_bind_int64(scan->streams, 3, filter->first_session);
    sqlite3_bind_int64(scan->streams, 4, filter->last_session);
    sqlite3_bind_int(scan->streams, 5, filter->by_thread);
    sqlite3_bind_int64(scan->streams, 6, filter->thread_id);
    begin_progress(scan);
    return SQLITE_OK;
}

/* Writes the range of `first_call` of those blocks of the stream that may hold calls with the
 * filter's ids and start times. */
static int find_range(sj_block_scan *scan, int64_t *first, int64_t *last)
{
    const int64_t first_id = (int64_t)sj_call_id_of((uint64_t)scan->stream_id, 0);
    const int64_t top = (INT64_C(1) << SJ_CALL_INDEX_BITS) - 1;
    *first = scan->filter.first_call > first_id ? scan->filter.first_call - first_id : 0;
    *last = scan->filter.last_call - first_id < top ? scan->filter.last_call - first_id : top;
    sqlite3_bind_int64(scan->bounds, 1, scan->stream_id);
    sqlite3_bind_int64(scan->bounds, 2, *first);
    sqlite3_bind_int64(scan->bounds, 3, clamp_ticks(scan->session.first_start));
    sqlite3_bind_int64(scan->bounds, 4, clamp_ticks(scan->session.last_start));
    const int result = sqlite3_step(scan->bounds);
    if (result == SQLITE_ROW) {
        const int64_t by_call = sqlite3_column_int64(scan->bounds, 0);
        const int64_t by_time = sqlite3_column_int64(scan->bounds, 1);
        *first = by_call > by_time ? by_call : by_time;
        if (sqlite3_column_type(scan->bounds, 2) == SQLITE_NULL) {
            *last = -1;
        } else if (sqlite3_column_int64(scan->bounds, 2) < *last) {
            *last = sqlite3_column_int64(scan->bounds, 2);
        }
    }
    sqlite3_reset(scan->bounds);
    return result == SQLITE_ROW ? SQLITE_OK : result;
}

/* Adds the calls in a block's list of late exits to scan->long_calls. */
static void add_long_calls(sj_block_scan *scan, sj_slice list, uint64_t first_ticks)
{
    sj_deferred_exits_reader reader;
    sj_deferred_exit leave;
    if (sj_deferred_exits_open(list, first_ticks, &reader) != SJ_OK) {
        return;
    }
    while (sj_deferred_exits_next(&reader, &leave) == SJ_OK) {
        if (scan->long_count == SJ_SCAN_MAX_LONG_CALLS) {
            scan->long_overflow = true;
            return;
        }
        scan->long_calls[scan->long_count++] = leave.call_index;
    }
}

static int read_long_calls(void *context, sqlite3_stmt *row)
{
    sj_block_scan *scan = context;
    add_long_calls(scan, sj_sql_blob(row, 0), (uint64_t)sqlite3_column_int64(row, 1));
    return scan->long_overflow ? SQLITE_DONE : SQLITE_OK;
}

/* Finds the calls of the stream that ended in a later block, in blocks with a call of the wanted
 * duration. */
static int find_long_calls(sj_block_scan *scan)
{
    scan->long_count = 0;
    scan->long_overflow = false;
    if (scan->session.min_duration == 0) {
        return SQLITE_OK;
    }
    if (scan->long_calls == NULL) {
        scan->long_calls = malloc(SJ_SCAN_MAX_LONG_CALLS * sizeof(*scan->long_calls));
        if (scan->long_calls == NULL) {
            return SQLITE_NOMEM;
        }
    }
    sqlite3_bind_int64(scan->longest, 1, scan->stream_id);
    sqlite3_bind_int64(scan->longest, 2, clamp_ticks(scan->session.min_duration));
    return sj_sql_scan(scan->longest, read_long_calls, scan);
}

/* Adds the calls in a block's list of late exits to scan->outlasting_calls that began before the
 * block `outlasted` and end at the earliest wanted end or later. */
static void add_outlasting_calls(sj_block_scan *scan, sj_slice list, uint64_t first_ticks)
{
    sj_deferred_exits_reader reader;
    sj_deferred_exit leave;
    if (sj_deferred_exits_open(list, first_ticks, &reader) != SJ_OK) {
        return;
    }
    while (sj_deferred_exits_next(&reader, &leave) == SJ_OK && leave.call_index < scan->outlasted) {
        if (leave.end_ticks < scan->session.first_end) {
            continue;
        }
        if (scan->outlasting_count == SJ_SCAN_MAX_LONG_CALLS) {
            scan->outlasting_overflow = true;
            return;
        }
        scan->outlasting_calls[scan->outlasting_count++] = leave.call_index;
    }
}

static int read_outlasting_calls(void *context, sqlite3_stmt *row)
{
    sj_block_scan *scan = context;
    const sj_slice list = sj_sql_blob(row, 1);
    scan->outlasted = (uint64_t)sqlite3_column_int64(row, 0);
    if (list.data != NULL) {
        add_outlasting_calls(scan, list, (uint64_t)sqlite3_column_int64(row, 2));
    }
    return scan->outlasting_overflow ? SQLITE_DONE : SQLITE_OK;
}

static int find_outlasting_calls(sj_block_scan *scan)
{
    scan->outlasted = scan->outlasting_count = 0;
    scan->outlasting_overflow = false;
    if (scan->session.first_end == 0) {
        return SQLITE_OK;
    }
    if (scan->outlasting_calls == NULL) {
        scan->outlasting_calls = malloc(SJ_SCAN_MAX_LONG_CALLS * sizeof(*scan->outlasting_calls));
        if (scan->outlasting_calls == NULL) {
            return SQLITE_NOMEM;
        }
    }
    sqlite3_bind_int64(scan->outlasting, 1, scan->stream_id);
    sqlite3_bind_int64(scan->outlasting, 2, clamp_ticks(scan->session.first_end));
    return sj_sql_scan(scan->outlasting, read_outlasting_calls, scan);
}

/* Moves to the next stream, and sets in_stream if the stream may hold wanted calls. Returns
 * SQLITE_ROW, SQLITE_DONE or an error. */
static int next_stream(sj_block_scan *scan)
{
    const int result = sqlite3_step(scan->streams);
    if (result != SQLITE_ROW) {
        sqlite3_reset(scan->streams);
        return result;
    }
    scan->stream_id = sqlite3_column_int64(scan->streams, 0);
    scan->thread_id = sqlite3_column_type(scan->streams, 2) == SQLITE_NULL
                          ? INT64_MIN
                          : sqlite3_column_int64(scan->streams, 2);
    const int entered = sj_scan_session_enter(scan, sqlite3_column_int64(scan->streams, 1));
    if (entered == SQLITE_NOTFOUND || entered == SJ_SCAN_NO_CLOCK) {
        sj_query_warn(scan->state, -scan->stream_id,
                      sqlite3_mprintf("stream %lld: its session has no usable clock; its calls are "
                                      "missing here",
                                      scan->stream_id));
        return SQLITE_ROW;
    }
    if (entered != SQLITE_OK) {
        return entered;
    }
    if ((scan->filter.by_function && scan->session.function_count == 0) ||
        scan->session.first_start > scan->session.last_start) {
        return SQLITE_ROW;
    }
    int64_t first;
    int64_t last;
    int ranged = find_range(scan, &first, &last);
    if (ranged == SQLITE_OK) {
        ranged = find_long_calls(scan);
    }
    if (ranged == SQLITE_OK) {
        ranged = find_outlasting_calls(scan);
    }
    if (ranged != SQLITE_OK) {
        return ranged;
    }
    sqlite3_bind_int64(scan->blocks, 1, scan->stream_id);
    sqlite3_bind_int64(scan->blocks, 2, first);
    sqlite3_bind_int64(scan->blocks, 3, last);
    scan->in_stream = first <= last;
    return SQLITE_ROW;
}

void sj_block_scan_warn(sj_block_scan *scan, const char *why)
{
    const int64_t first = sqlite3_column_int64(scan->blocks, 1);
    const int64_t count = sqlite3_column_int64(scan->blocks, 2);
    sj_query_warn(
        scan->state, scan->block_id,
        sqlite3_mprintf("block %lld cannot be read (%s): %lld calls of stream %lld, from "
                        "call %lld on, are missing here",
                        scan->block_id, why, count, scan->stream_id,
                        (int64_t)sj_call_id_of((uint64_t)scan->stream_id, (uint64_t)first)));
}

/* True if one of `calls`, which are numbers in the stream, was entered in the block. */
static bool holds_any(const sj_block_scan *scan, const uint64_t *calls, size_t count)
{
    const uint64_t first = (uint64_t)sqlite3_column_int64(scan->blocks, 1);
    const uint64_t span = (uint64_t)sqlite3_column_int64(scan->blocks, 2) +
                          (uint64_t)sqlite3_column_int64(scan->blocks, 8);
    for (size_t i = 0; i < count; ++i) {
        if (calls[i] - first < span) {
            return true;
        }
    }
    return false;
}

/* True if a call of the wanted duration may have been entered in the block: the call ended there,
 * or is in long_calls. */
static bool may_have_long_call(const sj_block_scan *scan)
{
    return scan->session.min_duration == 0 || scan->long_overflow ||
           (uint64_t)sqlite3_column_int64(scan->blocks, 5) >= scan->session.min_duration ||
           holds_any(scan, scan->long_calls, scan->long_count);
}

/* True if a call that ends at the earliest wanted end or later may have been entered in the
 * block. */
static bool may_have_late_end(const sj_block_scan *scan)
{
    return scan->outlasting_overflow ||
           (uint64_t)sqlite3_column_int64(scan->blocks, 1) >= scan->outlasted ||
           holds_any(scan, scan->outlasting_calls, scan->outlasting_count);
}

/* True if the columns of `blocks` do not exclude that the block holds a wanted call. */
static bool may_have_wanted_call(const sj_block_scan *scan)
{
    const sj_scan_session *session = &scan->session;
    sqlite3_stmt *row = scan->blocks;
    if ((uint64_t)sqlite3_column_int64(row, 3) > session->last_start ||
        (uint64_t)sqlite3_column_int64(row, 4) < session->first_start) {
        return false;
    }
    if (!may_have_long_call(scan) || !may_have_late_end(scan)) {
        return false;
    }
    return scan->filter.min_depth <= sqlite3_column_int64(row, 7);
}

/* True if the block's function bitmap does not exclude that a wanted function was called in the
 * block. */
static bool may_have_function(sj_block_scan *scan)
{
    const sj_scan_session *session = &scan->session;
    sqlite3_stmt *row = scan->contents;
    if (!scan->filter.by_function || session->bitmap_useless ||
        sj_scan_contents_read(scan) != SQLITE_OK || sqlite3_column_type(row, 0) != SQLITE_BLOB) {
        return true;
    }
    const uint8_t *bitmap = sqlite3_column_blob(row, 0);
    const size_t size = (size_t)sqlite3_column_bytes(row, 0);
    for (size_t i = 0; i < session->function_count; ++i) {
        if (sj_function_bitmap_may_have(bitmap, size, session->functions[i])) {
            return true;
        }
    }
    return false;
}

/* Writes function_ids and function_matches for the entries of the block's dictionary. */
static int map_dictionary(sj_block_scan *scan)
{
    const sj_block *block = &scan->block;
    if (block->function_count > scan->dictionary_capacity) {
        int64_t *ids = realloc(scan->function_ids, block->function_count * sizeof(*ids));
        scan->function_ids = ids != NULL ? ids : scan->function_ids;
        bool *matches = realloc(scan->function_matches, block->function_count * sizeof(*matches));
        scan->function_matches = matches != NULL ? matches : scan->function_matches;
        if (ids == NULL || matches == NULL) {
            return SQLITE_NOMEM;
        }
        scan->dictionary_capacity = block->function_count;
    }
    for (size_t i = 0; i < block->function_count; ++i) {
        scan->function_ids[i] = sj_scan_function_id(&scan->session, block->functions[i]);
        scan->function_matches[i] = sj_scan_filter_matches(&scan->filter, scan->function_ids[i]);
    }
    return SQLITE_OK;
}

static bool dictionary_matches(const sj_block_scan *scan)
{
    for (size_t i = 0; i < scan->block.function_count; ++i) {
        if (scan->function_matches[i]) {
            return true;
        }
    }
    return false;
}

/* Maps the dictionary. Returns SQLITE_ROW if it has a wanted function, SQLITE_OK to skip the
 * block. */
static int use_dictionary(sj_block_scan *scan)
{
    const int mapped = map_dictionary(scan);
    if (mapped != SQLITE_OK) {
        return mapped;
    }
    return dictionary_matches(scan) ? SQLITE_ROW : SQLITE_OK;
}

/* Decodes the block of the current row. Returns SQLITE_ROW to use it, SQLITE_OK to skip it. */
static int decode_block(sj_block_scan *scan, sj_slice bytes)
{
    sj_status status = sj_block_read_header(bytes, &scan->block.header);
    if (status == SJ_OK) {
        status = sj_block_decode(scan->decoder, bytes, scan->want, &scan->block);
    }
    if (status == SJ_ENOMEM) {
        return SQLITE_NOMEM;
    }
    if (status != SJ_OK) {
        sj_block_scan_warn(scan, sj_status_text(status));
        return SQLITE_OK;
    }
    return scan->want == 0 ? SQLITE_ROW : use_dictionary(scan);
}

/* Sets scan->place. True if all calls of the block start in the wanted window and the caller has
 * its sums already (is_known). */
static bool is_block_known(sj_block_scan *scan)
{
    scan->place = (sj_block_place){
        .block_id = scan->block_id,
        .stream_id = scan->stream_id,
        .first_call = (uint64_t)sqlite3_column_int64(scan->blocks, 1),
        .first_ticks = (uint64_t)sqlite3_column_int64(scan->blocks, 3),
        .last_ticks = (uint64_t)sqlite3_column_int64(scan->blocks, 4),
    };
    return scan->is_known != NULL && scan->place.first_ticks >= scan->session.first_start &&
           scan->place.last_ticks <= scan->session.last_start &&
           scan->is_known(scan->known_context, &scan->place);
}

/* Reads the block of the current row. Returns SQLITE_ROW to use it, SQLITE_OK to skip it. */
static int load_block(sj_block_scan *scan)
{
    scan->outlined = false;
    scan->block_id = sqlite3_column_int64(scan->blocks, 0);
    if (!may_have_wanted_call(scan) || !may_have_function(scan)) {
        return SQLITE_OK;
    }
    if (sqlite3_column_type(scan->blocks, 6) != SQLITE_NULL) {
        sj_block_scan_warn(scan, (const char *)sqlite3_column_text(scan->blocks, 6));
        return SQLITE_OK;
    }
    if (is_block_known(scan)) {
        return SQLITE_ROW;
    }
    if (scan->takes_outlines && scan->session.min_duration != 0) {
        const int outline_result = sj_scan_outline_use(scan);
        if (outline_result != SQLITE_NOTFOUND) {
            return outline_result == SQLITE_ROW
                       ? use_dictionary(scan)
                       : (outline_result == SQLITE_DONE ? SQLITE_OK : outline_result);
        }
    }
    sj_slice bytes;
    sj_error why = {0};
    const int result = sj_scan_contents_read(scan);
    if (result != SQLITE_OK && !sj_database_is_damaged(result)) {
        return result; /* a block is left out only if it is damaged */
    }
    const sj_status status = sj_scan_contents_bytes(scan, &bytes, &why);
    if (status == SJ_ENOMEM) {
        return SQLITE_NOMEM;
    }
    if (status != SJ_OK) {
        sj_block_scan_warn(scan, why.text);
        return SQLITE_OK;
    }
    return decode_block(scan, bytes);
}

int sj_block_scan_next(sj_block_scan *scan)
{
    for (;;) {
        if (!scan->in_stream) {
            const int result = next_stream(scan);
            if (result != SQLITE_ROW) {
                end_progress(scan);
                return result;
            }
            continue;
        }
        sj_scan_contents_leave(scan);
        const int result = sqlite3_step(scan->blocks);
        if (result == SQLITE_DONE) {
            sqlite3_reset(scan->blocks);
            scan->in_stream = false;
            continue;
        }
        if (result != SQLITE_ROW) {
            sqlite3_reset(scan->blocks);
            return result;
        }
        sj_progress_reach(scan->work, scan->blocks_begun++);
        const int loaded = load_block(scan);
        if (loaded != SQLITE_OK) {
            return loaded;
        }
    }
}

/* Callback of sj_late_exits_find: writes the end of a call into its row. */
static void set_late_exit(void *context, size_t position, const sj_deferred_exit *leave)
{
    sj_block_rows *rows = context;
    const uint32_t row = rows->open[position];
    rows->ends[row] = leave->end_ticks;
    rows->selves[row] = leave->self_ticks;
    rows->lefts[row] = leave->jumped_ticks != 0 ? leave->jumped_ticks : rows->lefts[row];
    rows->endings[row] = (uint8_t)leave->ending;
    rows->flags[row] = (uint8_t)((rows->flags[row] & SJ_CALL_UNTIMED) | leave->flags);
}

int sj_block_scan_rows(sj_block_scan *scan, bool resolve)
{
    const bool times = (scan->want & SJ_WANT_TIMES) != 0;
    const sj_status status =
        scan->outlined ? SJ_OK : sj_block_rows_build(&scan->rows, &scan->block, times);
    if (status == SJ_ENOMEM) {
        return SQLITE_NOMEM;
    }
    if (status != SJ_OK) {
        sj_block_scan_warn(scan, "its events contradict each other");
        return SJ_SCAN_CONTRADICTION;
    }
    scan->rows_have_times = times;
    if (!resolve || scan->rows.open_count == 0) {
        return SQLITE_OK;
    }
    uint64_t *indexes = sqlite3_malloc64(scan->rows.open_count * sizeof(*indexes));
    if (indexes == NULL) {
        return SQLITE_NOMEM;
    }
    for (size_t i = 0; i < scan->rows.open_count; ++i) {
        indexes[i] = scan->rows.indexes[scan->rows.open[i]];
    }
    const int result = sj_late_exits_find(&scan->late, scan->stream_id, indexes,
                                          scan->rows.open_count, set_late_exit, &scan->rows);
    sqlite3_free(indexes);
    return result;
}

/* Finds the frame at `depth` in the DEEP_FRAMES block `number`, or in one that it refers to. */
static int find_deep_frame(sj_block_scan *scan, uint32_t number, uint32_t depth,
                           sj_stack_frame *frame)
{
    if (scan->stack_decoder == NULL && sj_block_decoder_new(&scan->stack_decoder) != SJ_OK) {
        return SQLITE_NOMEM;
    }
    while (number != 0) {
        sqlite3_bind_int64(scan->stacks, 1, scan->stream_id);
        sqlite3_bind_int64(scan->stacks, 2, number);
        sj_block stack = {0};
        bool found = false;
        const int result = sqlite3_step(scan->stacks);
        if (result == SQLITE_ROW) {
            sj_slice bytes;
            found = sj_block_files_get_columns(scan->stack_files, scan->stacks, 0, 1, &bytes,
                                               NULL) == SJ_OK &&
                    sj_block_decode(scan->stack_decoder, bytes, 0, &stack) == SJ_OK;
        }
        sqlite3_reset(scan->stacks); /* the decoder holds its own copy */
        if (!found) {
            return result == SQLITE_ROW || result == SQLITE_DONE || sj_database_is_damaged(result)
                       ? SQLITE_NOTFOUND
                       : result;
        }
        const uint32_t first = stack.header.stack_frames;
        if (depth >= first) {
            if (depth - first >= stack.frame_count) {
                return SQLITE_NOTFOUND;
            }
            *frame = stack.frames[depth - first];
            return SQLITE_OK;
        }
        if (stack.header.stack_reference >= number) {
            return SQLITE_NOTFOUND; /* a loop: references only go to lower numbers */
        }
        number = stack.header.stack_reference;
    }
    return SQLITE_NOTFOUND;
}

int sj_block_scan_frame(sj_block_scan *scan, uint32_t depth, sj_stack_frame *frame)
{
    const sj_block *block = &scan->block;
    if (scan->outlined && !scan->frames_read && sj_scan_outline_load_frames(scan) != SQLITE_OK) {
        return SQLITE_NOTFOUND;
    }
    const uint32_t deep = block->header.stack_frames;
    if (depth < deep) {
        return find_deep_frame(scan, block->header.stack_reference, depth, frame);
    }
    if (depth - deep >= block->frame_count) {
        return SQLITE_NOTFOUND;
    }
    *frame = block->frames[depth - deep];
    return SQLITE_OK;
}
