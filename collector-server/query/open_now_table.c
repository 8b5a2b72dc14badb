/* Two table functions.
 *
 * open_now(session_id): the calls that are open at the end of each stream's stored data. The calls
 * of a stream that has ended come from open_calls; sums count them. Sums do not count yet the open
 * calls of a stream that is being recorded (is_counted 0).
 *
 * open_before(session_id): the calls that were open before the first block of each stream. A flight
 * dump has such calls. Sums count them when they end; `calls` has no rows for them.
 *
 * Design notes. A block contains the calls that were open before it. So each table reads one block
 * per stream: the first block, or the last block of a stream that is being recorded. */
#include "schema/queries/query/open_now_table.h"
#include "collector-server/query/block_scan.h"
#include "collector-server/query/scan_session.h"
#include "collector-server/query/table_function.h"
#include "collector-server/store/sql.h"
#include "proto/base/array.h"
#include "proto/callgraph/stack_walk.h"

#include <stdlib.h>

enum { COLUMN_STREAM_ID, COLUMN_CALL_ID, COLUMN_FUNCTION_ID, COLUMN_DEPTH, COLUMN_START_NS };
enum { COLUMN_IS_COUNTED = COLUMN_START_NS + 1, COLUMN_SESSION_ID };

enum { CALL_INDEX_BITS = 38 };

typedef struct open_row {
    int64_t columns[COLUMN_SESSION_ID];
} open_row;

typedef struct open_now_cursor {
    sqlite3_vtab_cursor base;
    sqlite3_stmt *ended;  /* reads the open calls of ended streams */
    sqlite3_stmt *blocks; /* reads the first or last block of each stream */
    sj_block_scan scan;
    open_row *rows;
    size_t count, capacity, at;
    int64_t session_id;
} open_now_cursor;

static bool is_open_before(const open_now_cursor *cursor)
{
    return sj_table_of(&cursor->base)->kind->variant;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    open_now_cursor *cursor = (open_now_cursor *)base;
    sqlite3_finalize(cursor->ended);
    sqlite3_finalize(cursor->blocks);
    sj_block_scan_close(&cursor->scan);
    free(cursor->rows);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    static const char ended_sql[] =
        "SELECT o.stream_id, o.stream_id << 38 | o.call_index, o.function_id, o.depth, o.start_ns, "
        "1 FROM streams AS s JOIN open_calls AS o USING (stream_id) WHERE s.session_id = ?1 ORDER "
        "BY o.stream_id, o.call_index";
    open_now_cursor *cursor = sj_table_new_cursor(sizeof(*cursor));
    if (cursor == NULL) {
        return SQLITE_NOMEM;
    }
    sj_query_state *state = ((sj_table *)base)->state;
    int result = sj_block_scan_open(&cursor->scan, state);
    if (result == SQLITE_OK) {
        result = sqlite3_prepare_v2(state->database, ended_sql, -1, &cursor->ended, NULL);
    }
    if (result == SQLITE_OK) {
        result = sqlite3_prepare_v2(state->database,
                                    ((sj_table *)base)->kind->variant ? sj_open_now_table_first_sql
                                                                      : sj_open_now_table_last_sql,
                                    -1, &cursor->blocks, NULL);
    }
    if (result != SQLITE_OK) {
        close_cursor(&cursor->base);
        return result;
    }
    *out = &cursor->base;
    return SQLITE_OK;
}

/* Appends a zeroed row and returns it. Returns NULL if out of memory. */
static open_row *add_row(open_now_cursor *cursor)
{
    if (sj_array_reserve(&cursor->rows, &cursor->capacity, cursor->count, 1,
                         sizeof(*cursor->rows)) != SJ_OK) {
        return NULL;
    }
    open_row *row = &cursor->rows[cursor->count++];
    *row = (open_row){0};
    return row;
}

static int add_ended(void *context, sqlite3_stmt *ended)
{
    open_row *row = add_row(context);
    if (row == NULL) {
        return SQLITE_NOMEM;
    }
    for (int i = 0; i < COLUMN_SESSION_ID; i++) {
        row->columns[i] = sqlite3_column_int64(ended, i);
    }
    return SQLITE_OK;
}

static int load_ended(open_now_cursor *cursor)
{
    sqlite3_bind_int64(cursor->ended, 1, cursor->session_id);
    return sj_sql_scan(cursor->ended, add_ended, cursor);
}

/* Adds a row for each frame, the outermost first. */
static int add_frames(open_now_cursor *cursor, const sj_stack_frame *frames, size_t count)
{
    const sj_block_scan *scan = &cursor->scan;
    for (size_t i = 0; i < count; i++) {
        open_row *row = add_row(cursor);
        if (row == NULL) {
            return SQLITE_NOMEM;
        }
        row->columns[COLUMN_STREAM_ID] = scan->stream_id;
        row->columns[COLUMN_CALL_ID] =
            scan->stream_id << CALL_INDEX_BITS | (int64_t)frames[i].call_index;
        row->columns[COLUMN_FUNCTION_ID] = sj_scan_function_id(&scan->session, frames[i].function);
        row->columns[COLUMN_DEPTH] = (int64_t)i;
        row->columns[COLUMN_START_NS] = sj_scan_ns(&scan->session, frames[i].start_ticks);
    }
    return SQLITE_OK;
}

/* Adds the calls that were open before the block, for open_before, or at its end, for open_now.
 * `deep` are the frames from DEEP_FRAMES blocks. */
static int add_open(open_now_cursor *cursor, const sj_stack_frame *deep)
{
    sj_stack_walk walk = {0};
    const sj_block *block = &cursor->scan.block;
    sj_status status = sj_stack_walk_begin(&walk, block, deep);
    if (status == SJ_OK && !is_open_before(cursor)) {
        status = sj_stack_walk_run(&walk, block);
    }
    int result = status == SJ_ENOMEM ? SQLITE_NOMEM : SQLITE_OK;
    if (status == SJ_OK) {
        result = add_frames(cursor, walk.frames, walk.count);
    } else if (status != SJ_ENOMEM) {
        sj_block_scan_warn(&cursor->scan, "its events contradict each other");
    }
    sj_stack_walk_deinit(&walk);
    return result;
}

/* Adds the open calls of the decoded block. */
static int load_block(open_now_cursor *cursor)
{
    sj_block_scan *scan = &cursor->scan;
    const uint32_t deep_count = scan->block.header.stack_frames;
    sj_stack_frame *deep = calloc((size_t)deep_count + 1, sizeof(*deep));
    int result = deep != NULL ? SQLITE_OK : SQLITE_NOMEM;
    for (uint32_t i = 0; i < deep_count && result == SQLITE_OK; i++) {
        result = sj_block_scan_frame(scan, i, &deep[i]);
    }
    if (result == SQLITE_OK) {
        result = add_open(cursor, deep);
    } else if (result == SQLITE_NOTFOUND) {
        sj_block_scan_warn(scan, "a block with the calls that were open before it is missing");
        result = SQLITE_OK;
    }
    free(deep);
    return result;
}

/* Decodes a block and adds its open calls. */
static int read_block(void *context, sqlite3_stmt *row)
{
    open_now_cursor *cursor = context;
    sj_block_scan *scan = &cursor->scan;
    sj_slice bytes;
    sj_error error = {0};
    scan->stream_id = sqlite3_column_int64(row, 0);
    scan->block_id = sqlite3_column_int64(row, 1);
    sj_status status = sj_block_files_get_columns(scan->files, row, 2, 3, &bytes, &error);
    if (status == SJ_OK) {
        status = sj_block_decode(scan->decoder, bytes, SJ_WANT_ALL, &scan->block);
    }
    if (status == SJ_ENOMEM) {
        return SQLITE_NOMEM;
    }
    if (status != SJ_OK) {
        sj_block_scan_warn(scan, "it cannot be read");
        return SQLITE_OK;
    }
    return load_block(cursor);
}

/* Converts SJ_SCAN_NO_CLOCK to SQLITE_ERROR with a message. Returns other results unchanged. */
static int convert_result(const open_now_cursor *cursor, int result)
{
    if (result != SJ_SCAN_NO_CLOCK) {
        return result;
    }
    cursor->base.pVtab->zErrMsg = sqlite3_mprintf("the session's clock makes no sense");
    return SQLITE_ERROR;
}

static int load_blocks(open_now_cursor *cursor)
{
    sj_block_scan *scan = &cursor->scan;
    scan->filter = sj_scan_everything;
    const int result = sj_scan_session_enter(scan, cursor->session_id);
    if (result != SQLITE_OK) {
        return result == SQLITE_NOTFOUND ? SQLITE_OK : convert_result(cursor, result);
    }
    sqlite3_bind_int64(cursor->blocks, 1, cursor->session_id);
    return sj_sql_scan(cursor->blocks, read_block, cursor);
}

static int filter_rows(sqlite3_vtab_cursor *base, int given, const char *plan, int argc,
                       sqlite3_value **argv)
{
    (void)given;
    (void)plan;
    (void)argc;
    open_now_cursor *cursor = (open_now_cursor *)base;
    cursor->count = cursor->at = 0;
    cursor->session_id = sqlite3_value_int64(argv[0]);
    const int result = is_open_before(cursor) ? SQLITE_OK : load_ended(cursor);
    return result == SQLITE_OK ? load_blocks(cursor) : result;
}

static int next_row(sqlite3_vtab_cursor *base)
{
    ++((open_now_cursor *)base)->at;
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
    const open_now_cursor *cursor = (const open_now_cursor *)base;
    return cursor->at >= cursor->count;
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const open_now_cursor *cursor = (const open_now_cursor *)base;
    sqlite3_result_int64(context, column == COLUMN_SESSION_ID
                                      ? cursor->session_id
                                      : cursor->rows[cursor->at].columns[column]);
    return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    const open_now_cursor *cursor = (const open_now_cursor *)base;
    *rowid = cursor->rows[cursor->at].columns[COLUMN_CALL_ID];
    return SQLITE_OK;
}

static const sqlite3_module open_now_methods = SJ_TABLE_METHODS(sj_table_use_arguments);

#define OPEN_COLUMNS                                                                               \
    "stream_id INTEGER, call_id INTEGER, function_id INTEGER, depth INTEGER, start_ns INTEGER, "   \
    "is_counted INTEGER, session_id HIDDEN)"

int sj_register_open_now(sj_query_state *state)
{
    static const sj_table_kind now = {.name = "open_now",
                                      .declaration = "CREATE TABLE open_now(" OPEN_COLUMNS,
                                      .first_argument = COLUMN_SESSION_ID,
                                      .argument_count = 1,
                                      .required_count = 1,
                                      .rows = 50,
                                      .cost = 1000};
    static const sj_table_kind before = {.name = "open_before",
                                         .declaration = "CREATE TABLE open_before(" OPEN_COLUMNS,
                                         .variant = true,
                                         .first_argument = COLUMN_SESSION_ID,
                                         .argument_count = 1,
                                         .required_count = 1,
                                         .rows = 50,
                                         .cost = 1000};
    const int result = sj_table_register(state, &now, &open_now_methods);
    return result == SQLITE_OK ? sj_table_register(state, &before, &open_now_methods) : result;
}
