/* Returns the calls of one stream that begin in a time window or were open at its start.
 *
 * A call narrower than a pixel joins the bar of the previous narrow call at the same depth, if both
 * begin in the same pixel. A bar has the count of its calls and all their flags. So a response has
 * at most `width` bars for each depth, plus one for each wide call.
 *
 * Only the last call that began before the window, and its callers, can be open at the start. The
 * last block that begins before the window contains that call, so no earlier block is searched. */
#include "collector-server/http/context.h"
#include "collector-server/http/parameters.h"
#include "collector-server/query/json_rows.h"
#include "collector-server/query/query.h"
#include "collector-server/store/store.h"
#include "schema/queries/http/calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH_DEFAULT = 1000,
    WIDTH_MAX = 4000,
    /* most calls in the blocks that a window overlaps; reading them takes about 0.1 s */
    CALLS_MAX = 1200000,
    BARS_MAX = 30000,
    DEPTH_MAX = 4096,
    DEADLINE_MS = 5000
};

#define TIME_MAX_NS INT64_C(999999999999999999)

typedef struct window {
    int64_t stream;
    int64_t from_ns;
    int64_t to_ns;
    int64_t width;
    sj_request *request;
    sqlite3 *database;
} window;

/* The latest bar at one depth. */
typedef struct track {
    json_t *bar;   /* bar that the next narrow call may join; borrowed from `rows`; NULL: none */
    int64_t pixel; /* pixel where the bar begins; -1: no call can join it */
    int64_t flags; /* flags of all calls of the bar */
    int64_t count;
} track;

typedef struct picture {
    json_t *rows;
    json_t *functions; /* function names by id */
    json_t *counting;  /* ids of functions that made calls that were only counted */
    track tracks[DEPTH_MAX];
    bool is_truncated;
} picture;

static int keep_going(void *context)
{
    return !sj_request_is_wanted(context);
}

static sj_status prepare(const window *view, const char *sql, sqlite3_stmt **statement,
                         sj_error *error)
{
    SJ_TRY(sj_rows_prepare(view->database, sql, statement, error));
    const int64_t values[] = {view->request->id, view->stream, view->from_ns, view->to_ns};
    for (int i = 0; i < sqlite3_bind_parameter_count(*statement); i++) {
        sqlite3_bind_int64(*statement, i + 1, values[i]);
    }
    return SJ_OK;
}

static sj_status end(sqlite3_stmt *statement, int step, sj_error *error)
{
    sqlite3 *database = sqlite3_db_handle(statement);
    const sj_status status =
        step == SQLITE_DONE || step == SQLITE_ROW ? SJ_OK
        : step == SQLITE_INTERRUPT
            ? sj_fail(error, SJ_ETIMEDOUT, "the window holds too many calls; zoom in")
            : sj_fail(error, SJ_EIO, "database: %s", sqlite3_errmsg(database));
    sqlite3_finalize(statement);
    return status;
}

static sj_status read_one(const window *view, const char *sql, int64_t *value, bool *is_null,
                          sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    SJ_TRY(prepare(view, sql, &statement, error));
    const int step = sqlite3_step(statement);
    *is_null = step != SQLITE_ROW || sqlite3_column_type(statement, 0) == SQLITE_NULL;
    *value = *is_null ? 0 : sqlite3_column_int64(statement, 0);
    return end(statement, step, error);
}

/* Adds a narrow call to the bar of narrow calls that begins in the same pixel. If there is none,
 * resets the track and returns false: the caller then makes a new bar. */
static bool join_bar(const window *view, picture *drawn, int64_t depth, int64_t start_ns,
                     int64_t end_ns, int64_t flags)
{
    const int64_t length = view->to_ns - view->from_ns + 1;
    track *at = &drawn->tracks[depth];
    const int64_t pixel =
        (int64_t)((double)(start_ns - view->from_ns) * (double)view->width / (double)length);
    const bool is_narrow = (double)(end_ns - start_ns) * (double)view->width < (double)length &&
                           start_ns >= view->from_ns;
    if (is_narrow && at->bar != NULL && at->pixel == pixel) {
        json_array_set_new(at->bar, 4, json_integer(end_ns));
        at->flags |= flags;
        json_array_set_new(at->bar, 7, json_integer(at->flags));
        json_array_set_new(at->bar, 8, json_integer(++at->count));
        return true;
    }
    at->bar = NULL;
    at->pixel = is_narrow ? pixel : -1;
    at->flags = flags;
    at->count = 1;
    return false;
}

static void describe_function(const window *view, picture *drawn, const char *id)
{
    sqlite3_stmt *statement = NULL;
    sj_error ignored;
    json_t *rows = NULL;
    if (json_object_get(drawn->functions, id) != NULL) {
        return;
    }
    json_object_set_new(drawn->functions, id, json_string(""));
    if (sj_rows_prepare(view->database, sj_calls_function_sql, &statement, &ignored) == SJ_OK) {
        sqlite3_bind_text(statement, 1, id, -1, SQLITE_STATIC);
        sqlite3_bind_int64(statement, 2, view->request->id);
        if (sj_rows_read(statement, 1, &rows, NULL, &ignored) == SJ_OK) {
            const json_t *row = json_array_get(rows, 0);
            json_object_set(drawn->functions, id, json_object_get(row, "name"));
            if (json_is_true(json_object_get(row, "is_counting"))) {
                json_array_append_new(drawn->counting, json_string(id));
            }
            json_decref(rows);
        }
    }
}

static void add_call(const window *view, picture *drawn, sqlite3_stmt *statement)
{
    char function[24];
    const int64_t depth = sqlite3_column_int64(statement, 2);
    const int64_t start_ns = sqlite3_column_int64(statement, 3);
    const bool has_ended = sqlite3_column_type(statement, 4) != SQLITE_NULL;
    const int64_t end_ns = has_ended ? sqlite3_column_int64(statement, 4) : INT64_MAX;
    const int64_t flags = sqlite3_column_int64(statement, 7);
    if (depth < 0 || depth >= DEPTH_MAX || json_array_size(drawn->rows) >= BARS_MAX) {
        drawn->is_truncated = true;
        return;
    }
    if (join_bar(view, drawn, depth, start_ns, end_ns, flags)) {
        return;
    }
    snprintf(function, sizeof(function), "%" PRId64, (int64_t)sqlite3_column_int64(statement, 1));
    describe_function(view, drawn, function);
    json_t *bar = json_pack(
        "[o s I I o o b I I b]",
        json_sprintf("%" PRId64, (int64_t)sqlite3_column_int64(statement, 0)), function,
        (json_int_t)depth, (json_int_t)start_ns, has_ended ? json_integer(end_ns) : json_null(),
        has_ended ? json_integer(sqlite3_column_int64(statement, 5)) : json_null(),
        sqlite3_column_int(statement, 6), (json_int_t)flags, (json_int_t)1,
        sqlite3_column_int(statement, 8));
    if (json_array_append_new(drawn->rows, bar) == 0) {
        drawn->tracks[depth].bar = drawn->tracks[depth].pixel >= 0 ? bar : NULL;
    }
}

static sj_status add_calls(const window *view, picture *drawn, sqlite3_stmt *statement,
                           sj_error *error)
{
    int step;
    while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
        add_call(view, drawn, statement);
    }
    return end(statement, step, error);
}

static sj_status add_open(const window *view, picture *drawn, sj_error *error)
{
    int64_t call;
    bool is_none;
    sqlite3_stmt *statement = NULL;
    SJ_TRY(read_one(view, sj_calls_before_sql, &call, &is_none, error));
    if (is_none) {
        return SJ_OK;
    }
    SJ_TRY(sj_rows_prepare(view->database, sj_calls_open_sql, &statement, error));
    sqlite3_bind_int64(statement, 1, call);
    sqlite3_bind_int64(statement, 2, view->from_ns);
    return add_calls(view, drawn, statement, error);
}

static sj_status draw(const window *view, json_t **body, sj_error *error)
{
    int64_t calls;
    bool is_null;
    sqlite3_stmt *statement = NULL;
    picture *drawn = NULL;
    SJ_TRY(sj_rows_require_session(view->database, view->request->id, error));
    SJ_TRY(read_one(view, sj_calls_touched_sql, &calls, &is_null, error));
    drawn = calloc(1, sizeof(*drawn));
    if (drawn == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    drawn->rows = json_array();
    drawn->functions = json_object();
    drawn->counting = json_array();
    sj_status status = SJ_OK;
    const bool is_too_many = calls > CALLS_MAX;
    if (!is_too_many) {
        status = add_open(view, drawn, error);
    }
    if (status == SJ_OK && !is_too_many) {
        status = prepare(view, sj_calls_begun_sql, &statement, error);
    }
    if (status == SJ_OK && !is_too_many) {
        status = add_calls(view, drawn, statement, error);
    }
    if (status == SJ_OK) {
        char *warnings = sj_query_read_warnings(view->database);
        *body =
            json_pack("{s[ssssssssss] sO sO sO sb sb sI ss%}", "columns", "call_id", "function_id",
                      "depth", "start_ns", "end_ns", "self_ns", "is_unwound", "flags", "count",
                      "is_open", "rows", drawn->rows, "functions", drawn->functions,
                      "calls_counted", drawn->counting, "truncated", drawn->is_truncated,
                      "is_too_many", is_too_many, "calls_in_blocks", (json_int_t)calls, "warnings",
                      warnings != NULL ? warnings : "", warnings != NULL ? strlen(warnings) : 0);
        sqlite3_free(warnings);
        status = *body != NULL ? SJ_OK : sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    json_decref(drawn->rows);
    json_decref(drawn->functions);
    json_decref(drawn->counting);
    free(drawn);
    return status;
}

static sj_status answer_calls(sj_request *request, json_t **body, sj_error *error)
{
    window view = {.request = request};
    const sj_parameter_range time = {0, TIME_MAX_NS, 0};
    SJ_TRY(sj_parameter_number(request, "stream", (sj_parameter_range){1, INT64_MAX, 0},
                               &view.stream, error));
    SJ_TRY(sj_parameter_number(request, "from_ns", time, &view.from_ns, error));
    SJ_TRY(sj_parameter_number(request, "to_ns", (sj_parameter_range){0, TIME_MAX_NS, TIME_MAX_NS},
                               &view.to_ns, error));
    SJ_TRY(sj_parameter_number(request, "width", (sj_parameter_range){1, WIDTH_MAX, WIDTH_DEFAULT},
                               &view.width, error));
    if (view.stream == 0 || view.to_ns < view.from_ns) {
        return sj_fail(error, SJ_EINVAL, "'stream' is missing, or 'to_ns' lies before 'from_ns'");
    }
    SJ_TRY(sj_database_open_reader(request->context->database_path, &view.database, error));
    sqlite3_progress_handler(view.database, 2000, keep_going, request);
    const sj_status status = draw(&view, body, error);
    sqlite3_close(view.database);
    return status;
}

const sj_route sj_route_calls = {.pattern = "/api/v1/sessions/{id}/calls",
                                 .role = SJ_ROLE_READER,
                                 .is_slow = true,
                                 .has_own_database = true,
                                 .run = answer_calls};
