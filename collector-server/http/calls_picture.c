/* Design notes. Only the last call that began before the window, and its callers, can be open at
 * the window's start. The last block that begins before the window contains that call, so no
 * earlier block is searched. Calls come in the order of entry, so the callers of a call are known
 * when it comes: `folded` counts, for each depth, how many calls of the current stack are folded.
 */
#include "collector-server/http/calls_picture.h"

#include "collector-server/query/json_rows.h"
#include "collector-server/query/query.h"
#include "collector-server/store/sql.h"
#include "proto/base/array.h"
#include "schema/queries/http/calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* most calls in the blocks that a window overlaps; reading them takes about 0.1 s */
    CALLS_MAX = 1200000,
    BARS_OF_STREAM_MAX = 30000,
    BARS_OF_ANSWER_MAX = 90000 /* they take about 80 MB */
};

/* Columns of a bar. */
enum { BAR_END = 4, BAR_FLAGS = 7, BAR_COUNT = 8, BAR_LEVELS = 10 };

typedef enum statement_kind {
    TOUCHED,
    BEFORE,
    OPEN,
    BEGUN,
    FUNCTION,
    STATEMENT_COUNT
} statement_kind;

/* The latest bar of one row. */
typedef struct row_state {
    json_t *bar;   /* borrowed from `rows`; NULL: none */
    int64_t pixel; /* pixel where the bar begins; -1: no call can join it */
    int64_t flags; /* flags of all calls of the bar */
    int64_t count;
    int64_t depth;  /* depth of the bar's last call */
    int64_t levels; /* number of levels that the bar holds */
} row_state;

struct sj_calls_picture {
    sqlite3 *database;
    int64_t session_id;
    sqlite3_stmt *statements[STATEMENT_COUNT];
    json_t *functions; /* function names by id */
    json_t *counting;  /* ids of functions that made calls that were only counted */
    size_t bar_count;  /* sum over the streams that were drawn */
    /* The members below describe the stream that is drawn. */
    const sj_calls_window *window;
    bool folds;
    json_t *bars;
    row_state *rows;  /* SJ_CALLS_PICTURE_ROWS */
    uint32_t *folded; /* by depth: number of calls of the current stack, up to it, without a row */
    size_t folded_capacity;
    int64_t levels; /* deepest row so far, plus one */
    bool is_truncated;
};

static int64_t number_at(sqlite3_stmt *row, int column)
{
    return sqlite3_column_int64(row, column);
}

sj_status sj_calls_picture_new(sqlite3 *database, int64_t session_id, sj_calls_picture **picture,
                               sj_error *error)
{
    static const char *const texts[STATEMENT_COUNT] = {[TOUCHED] = sj_calls_touched_sql,
                                                       [BEFORE] = sj_calls_before_sql,
                                                       [OPEN] = sj_calls_open_sql,
                                                       [BEGUN] = sj_calls_begun_sql,
                                                       [FUNCTION] = sj_calls_function_sql};
    sj_calls_picture *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    *made = (sj_calls_picture){.database = database,
                               .session_id = session_id,
                               .functions = json_object(),
                               .counting = json_array(),
                               .rows = calloc(SJ_CALLS_PICTURE_ROWS, sizeof(*made->rows))};
    sj_status status = made->functions != NULL && made->counting != NULL && made->rows != NULL
                           ? SJ_OK
                           : sj_fail(error, SJ_ENOMEM, "out of memory");
    for (int i = 0; status == SJ_OK && i < STATEMENT_COUNT; i++) {
        status = sj_rows_prepare(database, texts[i], &made->statements[i], error);
    }
    if (status != SJ_OK) {
        sj_calls_picture_free(made);
        return status;
    }
    *picture = made;
    return SJ_OK;
}

void sj_calls_picture_free(sj_calls_picture *picture)
{
    if (picture == NULL) {
        return;
    }
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        sqlite3_finalize(picture->statements[i]);
    }
    json_decref(picture->functions);
    json_decref(picture->counting);
    free(picture->rows);
    free(picture->folded);
    free(picture);
}

/* Binds the parameters that the statements of calls.sql share. Returns the statement. */
static sqlite3_stmt *bind(const sj_calls_picture *picture, statement_kind kind)
{
    const sj_calls_window *window = picture->window;
    sqlite3_stmt *statement = picture->statements[kind];
    const int64_t last_row = window->first_row + window->row_count - 1;
    const int64_t values[] = {picture->session_id,
                              window->stream_id,
                              window->from_ns,
                              window->to_ns,
                              picture->folds ? 0 : window->first_row,
                              picture->folds ? INT64_MAX : last_row};
    for (int i = 0; i < sqlite3_bind_parameter_count(statement); i++) {
        sqlite3_bind_int64(statement, i + 1, values[i]);
    }
    return statement;
}

/* Resets a statement after its last step. Fails if the step failed. */
static sj_status end(sqlite3_stmt *statement, int step, sj_error *error)
{
    const sj_status status =
        step == SQLITE_OK || step == SQLITE_DONE || step == SQLITE_ROW ? SJ_OK
        : step == SQLITE_INTERRUPT
            ? sj_fail(error, SJ_ETIMEDOUT, "the window holds too many calls; zoom in")
            : sj_fail(error, SJ_EIO, "database: %s", sqlite3_errmsg(sqlite3_db_handle(statement)));
    sqlite3_reset(statement);
    return status;
}

/* Adds a narrow call to the bar of narrow calls that begins in the same pixel. If there is none,
 * resets the row and returns false: the caller then makes a new bar. */
static bool join_bar(const sj_calls_window *window, row_state *at, int64_t start_ns, int64_t end_ns,
                     int64_t flags)
{
    const int64_t length = window->to_ns - window->from_ns + 1;
    const int64_t pixel =
        (int64_t)((double)(start_ns - window->from_ns) * (double)window->width / (double)length);
    const bool is_narrow = (double)(end_ns - start_ns) * (double)window->width < (double)length &&
                           start_ns >= window->from_ns;
    if (is_narrow && at->bar != NULL && at->pixel == pixel) {
        json_array_set_new(at->bar, BAR_END, json_integer(end_ns));
        at->flags |= flags;
        json_array_set_new(at->bar, BAR_FLAGS, json_integer(at->flags));
        json_array_set_new(at->bar, BAR_COUNT, json_integer(++at->count));
        return true;
    }
    *at = (row_state){.pixel = is_narrow ? pixel : -1, .flags = flags, .count = 1, .levels = 1};
    return false;
}

static void describe_function(sj_calls_picture *picture, const char *id)
{
    sqlite3_stmt *statement = picture->statements[FUNCTION];
    if (json_object_get(picture->functions, id) != NULL) {
        return;
    }
    json_object_set_new(picture->functions, id, json_string(""));
    sqlite3_bind_text(statement, 1, id, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, picture->session_id);
    if (sqlite3_step(statement) == SQLITE_ROW) {
        json_object_set_new(picture->functions, id, sj_rows_plain_value(statement, 0));
        if (number_at(statement, 1) != 0) {
            json_array_append_new(picture->counting, json_string(id));
        }
    }
    sqlite3_reset(statement);
}

/* Writes the row of a call. Sets `*is_folded` if the call has no row of its own: then the row is
 * that of its caller. Returns SJ_ENOMEM if out of memory. */
static sj_status find_row(sj_calls_picture *picture, int64_t depth, bool is_recursive, int64_t *row,
                          bool *is_folded)
{
    *row = depth;
    *is_folded = picture->folds && is_recursive && depth > 0;
    if (!picture->folds) {
        return SJ_OK;
    }
    SJ_TRY(sj_array_reserve(&picture->folded, &picture->folded_capacity, (size_t)depth, 1,
                            sizeof(*picture->folded)));
    const uint32_t above = depth > 0 ? picture->folded[depth - 1] : 0;
    picture->folded[depth] = above + (*is_folded ? 1 : 0);
    *row = depth - picture->folded[depth];
    return SJ_OK;
}

/* Counts a folded call as a level of the bar that holds it. */
static void add_level(row_state *at, int64_t depth)
{
    const int64_t levels = depth - at->depth + 1;
    if (at->bar != NULL && levels > at->levels) {
        at->levels = levels;
        json_array_set_new(at->bar, BAR_LEVELS, json_integer(levels));
    }
}

static void add_bar(sj_calls_picture *picture, sqlite3_stmt *call, int64_t row, row_state *at)
{
    char function[24];
    const bool has_ended = sqlite3_column_type(call, 4) != SQLITE_NULL;
    snprintf(function, sizeof(function), "%" PRId64, number_at(call, 1));
    describe_function(picture, function);
    json_t *bar =
        json_pack("[o s I I o o b I I b I I]", json_sprintf("%" PRId64, number_at(call, 0)),
                  function, (json_int_t)number_at(call, 2), (json_int_t)number_at(call, 3),
                  has_ended ? json_integer(number_at(call, 4)) : json_null(),
                  has_ended ? json_integer(number_at(call, 5)) : json_null(),
                  sqlite3_column_int(call, 6), (json_int_t)number_at(call, 7), (json_int_t)1,
                  sqlite3_column_int(call, 8), (json_int_t)1, (json_int_t)row);
    if (json_array_append_new(picture->bars, bar) == 0) {
        picture->bar_count++;
        at->bar = bar;
        at->depth = number_at(call, 2);
    }
}

/* Adds a call: the current row of a statement with the columns calls_call_columns. */
static int add_call(void *context, sqlite3_stmt *call)
{
    sj_calls_picture *picture = context;
    int64_t row;
    bool is_folded;
    const sj_calls_window *window = picture->window;
    if (find_row(picture, number_at(call, 2), sqlite3_column_int(call, 9) != 0, &row, &is_folded) !=
        SJ_OK) {
        return SQLITE_NOMEM;
    }
    picture->levels = row >= picture->levels ? row + 1 : picture->levels;
    if (row < window->first_row || row - window->first_row >= window->row_count) {
        return SQLITE_OK;
    }
    row_state *at = &picture->rows[row - window->first_row];
    if (is_folded) {
        add_level(at, number_at(call, 2));
        return SQLITE_OK;
    }
    const bool has_ended = sqlite3_column_type(call, 4) != SQLITE_NULL;
    if (join_bar(window, at, number_at(call, 3), has_ended ? number_at(call, 4) : INT64_MAX,
                 number_at(call, 7))) {
        at->depth = number_at(call, 2);
        return SQLITE_OK;
    }
    if (json_array_size(picture->bars) >= BARS_OF_STREAM_MAX ||
        picture->bar_count >= BARS_OF_ANSWER_MAX) {
        picture->is_truncated = true;
        return SQLITE_OK;
    }
    add_bar(picture, call, row, at);
    return SQLITE_OK;
}

static sj_status add_calls(sj_calls_picture *picture, sqlite3_stmt *statement, sj_error *error)
{
    const int result = sj_sql_scan(statement, add_call, picture);
    return result == SQLITE_NOMEM ? sj_fail(error, SJ_ENOMEM, "out of memory")
                                  : end(statement, result, error);
}

/* Adds the calls that were open at the start of the window. */
static sj_status add_open(sj_calls_picture *picture, sj_error *error)
{
    sqlite3_stmt *before = bind(picture, BEFORE);
    const int step = sqlite3_step(before);
    const bool is_any = step == SQLITE_ROW && sqlite3_column_type(before, 0) != SQLITE_NULL;
    const int64_t call = is_any ? number_at(before, 0) : 0;
    SJ_TRY(end(before, step, error));
    if (!is_any) {
        return SJ_OK;
    }
    sqlite3_stmt *open = picture->statements[OPEN];
    sqlite3_bind_int64(open, 1, call);
    sqlite3_bind_int64(open, 2, picture->window->from_ns);
    return add_calls(picture, open, error);
}

/* Reads the number of calls in the blocks that the window overlaps, and the most levels in one. */
static sj_status read_touched(sj_calls_picture *picture, int64_t *calls, int64_t *levels,
                              sj_error *error)
{
    sqlite3_stmt *touched = bind(picture, TOUCHED);
    const int step = sqlite3_step(touched);
    *calls = number_at(touched, 0);
    *levels = number_at(touched, 1);
    return end(touched, step, error);
}

static sj_status draw(sj_calls_picture *picture, json_t *track, sj_error *error)
{
    int64_t calls;
    int64_t most;
    const sj_calls_window *window = picture->window;
    SJ_TRY(read_touched(picture, &calls, &most, error));
    const bool is_too_many = calls > CALLS_MAX;
    picture->folds = window->folds && most > window->row_count;
    if (!is_too_many) {
        SJ_TRY(add_open(picture, error));
        SJ_TRY(add_calls(picture, bind(picture, BEGUN), error));
    }
    /* Without folding, calls below the last row are not read. The blocks say how deep they may
     * be. */
    if (!picture->folds && most > window->first_row + window->row_count && most > picture->levels) {
        picture->levels = most;
    }
    const bool failed =
        json_object_set(track, "rows", picture->bars) != 0 ||
        json_object_set_new(track, "levels", json_integer(picture->levels)) != 0 ||
        json_object_set_new(track, "is_folded", json_boolean(picture->folds)) != 0 ||
        json_object_set_new(track, "truncated", json_boolean(picture->is_truncated)) != 0 ||
        json_object_set_new(track, "is_too_many", json_boolean(is_too_many)) != 0 ||
        json_object_set_new(track, "calls_in_blocks", json_integer(calls)) != 0;
    return failed ? sj_fail(error, SJ_ENOMEM, "out of memory") : SJ_OK;
}

sj_status sj_calls_picture_draw(sj_calls_picture *picture, const sj_calls_window *window,
                                json_t *track, sj_error *error)
{
    picture->window = window;
    picture->levels = 0;
    picture->is_truncated = false;
    picture->bars = json_array();
    if (picture->folded != NULL) {
        memset(picture->folded, 0, picture->folded_capacity * sizeof(*picture->folded));
    }
    memset(picture->rows, 0, (size_t)window->row_count * sizeof(*picture->rows));
    const sj_status status = picture->bars != NULL ? draw(picture, track, error)
                                                   : sj_fail(error, SJ_ENOMEM, "out of memory");
    json_decref(picture->bars);
    picture->bars = NULL;
    picture->window = NULL;
    return status;
}

sj_status sj_calls_picture_finish(sj_calls_picture *picture, json_t *body, sj_error *error)
{
    char *warnings = sj_query_read_warnings(picture->database);
    json_t *shared = json_pack(
        "{s[ssssssssssss] sO sO ss%}", "columns", "call_id", "function_id", "depth", "start_ns",
        "end_ns", "self_ns", "is_unwound", "flags", "count", "is_open", "levels", "row",
        "functions", picture->functions, "calls_counted", picture->counting, "warnings",
        warnings != NULL ? warnings : "", warnings != NULL ? strlen(warnings) : 0);
    sqlite3_free(warnings);
    const bool failed = shared == NULL || json_object_update(body, shared) != 0;
    json_decref(shared);
    return failed ? sj_fail(error, SJ_ENOMEM, "out of memory") : SJ_OK;
}
