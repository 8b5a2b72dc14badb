/* Returns what the threads of a session did over time. For each stream, it reads the coarsest level
 * that has a step for at least every second pixel, or else the finest level. Steps that begin in
 * the same pixel are merged into one row, so a response has at most `width` rows for each stream.
 * It also contains the call paths that were open at the start of rows, with all their callers. If
 * the parameter `calls` names streams, it contains their single calls, too (calls_picture.h). So
 * one response is enough to draw a timeline. */
#include "collector-server/http/calls_picture.h"
#include "collector-server/http/context.h"
#include "collector-server/http/parameters.h"
#include "collector-server/query/json_rows.h"
#include "collector-server/query/query.h"
#include "schema/queries/http/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH_DEFAULT = 1000,
    ROWS_MAX = 20000,
    PATHS_MAX = 20000,
    STREAMS_MAX = 100,
    STREAMS_BYTES = 4000,
    /* A stream with more calls in its steps has no single calls in the answer. */
    CALLS_MAX = 250000
};

#define TIME_MAX_NS INT64_C(999999999999999999)

/* Adds the call paths of the rows, and the call paths of their callers, to the response. */
static sj_status add_paths(sqlite3 *database, json_t *body, sj_error *error)
{
    size_t index;
    json_t *row;
    json_t *paths = NULL;
    json_t *seen = json_object();
    json_t *ids = json_array();
    sqlite3_stmt *statement = NULL;
    json_array_foreach(json_object_get(body, "items"), index, row)
    {
        const char *id = json_string_value(json_object_get(row, "path_id"));
        if (id != NULL && json_object_get(seen, id) == NULL) {
            json_object_set_new(seen, id, json_true());
            json_array_append(ids, json_object_get(row, "path_id"));
        }
    }
    char *text = json_dumps(ids, JSON_COMPACT);
    json_decref(ids);
    json_decref(seen);
    sj_status status = text != NULL
                           ? sj_rows_prepare(database, sj_timeline_paths_sql, &statement, error)
                           : sj_fail(error, SJ_ENOMEM, "out of memory");
    if (status == SJ_OK) {
        sqlite3_bind_text(statement, 1, text, -1, SQLITE_TRANSIENT);
        sqlite3_bind_int64(statement, 2, PATHS_MAX + 1);
        status = sj_rows_read(statement, PATHS_MAX, &paths, NULL, error);
    }
    free(text);
    return status == SJ_OK && json_object_set_new(body, "paths", paths) != 0
               ? sj_fail(error, SJ_ENOMEM, "out of memory")
               : status;
}

/* A request for a timeline. */
typedef struct timeline {
    sqlite3 *database;
    int64_t session_id;
    int64_t from_ns, to_ns;
    int64_t width;
    int64_t row_count;
    bool folds;
    bool has_streams; /* the request names streams */
    size_t stream_count;
    struct {
        int64_t id, first_row;
    } streams[STREAMS_MAX];
} timeline;

/* Reads one stream of the parameter `calls`: an id, or id@first_row. */
static bool read_stream(char *text, timeline *asked)
{
    char *row = strchr(text, '@');
    int64_t first_row = 0;
    if (row != NULL) {
        *row = '\0';
        if (!sj_parse_whole_number(row + 1, INT32_MAX, &first_row)) {
            return false;
        }
    }
    asked->streams[asked->stream_count].first_row = first_row;
    return sj_parse_whole_number(text, INT64_MAX, &asked->streams[asked->stream_count++].id);
}

static sj_status read_streams(const sj_request *request, timeline *asked, sj_error *error)
{
    const char *text = NULL;
    char copy[STREAMS_BYTES + 1];
    char *rest = NULL;
    SJ_TRY(sj_parameter_text(request, "calls", STREAMS_BYTES, &text, error));
    asked->has_streams = text != NULL;
    if (text == NULL) {
        return SJ_OK;
    }
    snprintf(copy, sizeof(copy), "%s", text);
    for (char *one = strtok_r(copy, ",", &rest); one != NULL; one = strtok_r(NULL, ",", &rest)) {
        if (asked->stream_count == STREAMS_MAX || !read_stream(one, asked)) {
            return sj_fail(error, SJ_EINVAL,
                           "parameter 'calls' must be at most %d stream ids, each with @ROW or "
                           "without, separated by commas",
                           STREAMS_MAX);
        }
    }
    return SJ_OK;
}

static sj_status read_request(const sj_request *request, timeline *asked, sj_error *error)
{
    int64_t folds;
    *asked = (timeline){.session_id = request->id};
    SJ_TRY(sj_parameter_number(request, "from_ns", (sj_parameter_range){0, TIME_MAX_NS, 0},
                               &asked->from_ns, error));
    SJ_TRY(sj_parameter_number(request, "to_ns", (sj_parameter_range){0, TIME_MAX_NS, TIME_MAX_NS},
                               &asked->to_ns, error));
    SJ_TRY(sj_parameter_number(request, "width",
                               (sj_parameter_range){1, SJ_CALLS_PICTURE_WIDTH, WIDTH_DEFAULT},
                               &asked->width, error));
    SJ_TRY(sj_parameter_number(
        request, "rows", (sj_parameter_range){1, SJ_CALLS_PICTURE_ROWS, SJ_CALLS_PICTURE_ROWS},
        &asked->row_count, error));
    SJ_TRY(sj_parameter_number(request, "fold", (sj_parameter_range){0, 1, 0}, &folds, error));
    asked->folds = folds != 0;
    SJ_TRY(read_streams(request, asked, error));
    return asked->has_streams && asked->to_ns < asked->from_ns
               ? sj_fail(error, SJ_EINVAL, "'to_ns' lies before 'from_ns'")
               : SJ_OK;
}

/* Binds parameter 6 of timeline_steps: the streams that the request names, NULL if it names none.
 */
static sj_status bind_streams(const timeline *asked, sqlite3_stmt *statement, sj_error *error)
{
    if (!asked->has_streams) {
        return SJ_OK;
    }
    json_t *ids = json_array();
    for (size_t i = 0; i < asked->stream_count; i++) {
        json_array_append_new(ids, json_integer(asked->streams[i].id));
    }
    char *text = json_dumps(ids, JSON_COMPACT);
    json_decref(ids);
    return text != NULL && sqlite3_bind_text(statement, 6, text, -1, free) == SQLITE_OK
               ? SJ_OK
               : sj_fail(error, SJ_ENOMEM, "out of memory");
}

static sj_status list_steps(const timeline *asked, json_t **body, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    SJ_TRY(sj_rows_prepare(asked->database, sj_timeline_steps_sql, &statement, error));
    sqlite3_bind_int64(statement, 1, asked->session_id);
    sqlite3_bind_int64(statement, 2, asked->from_ns);
    sqlite3_bind_int64(statement, 3, asked->to_ns);
    sqlite3_bind_int64(statement, 4, asked->width);
    sqlite3_bind_int64(statement, 5, ROWS_MAX + 1);
    const sj_status status = bind_streams(asked, statement, error);
    if (status != SJ_OK) {
        sqlite3_finalize(statement);
        return status;
    }
    return sj_rows_list(statement, ROWS_MAX, body, error);
}

/* Returns the number of calls in a stream's steps. */
static int64_t calls_in_steps(const json_t *body, int64_t stream)
{
    size_t index;
    json_t *row;
    int64_t calls = 0;
    char id[24];
    sqlite3_snprintf(sizeof(id), id, "%lld", stream);
    json_array_foreach(json_object_get(body, "items"), index, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "stream_id")), id) == 0) {
            calls += json_integer_value(json_object_get(row, "calls"));
        }
    }
    return calls;
}

/* Appends the single calls of stream number `index` of the request to `tracks`. */
static sj_status add_track(const timeline *asked, size_t index, const json_t *body,
                           sj_calls_picture *picture, json_t *tracks, sj_error *error)
{
    const int64_t stream = asked->streams[index].id;
    const sj_calls_window window = {.stream_id = stream,
                                    .from_ns = asked->from_ns,
                                    .to_ns = asked->to_ns,
                                    .width = asked->width,
                                    .first_row = asked->streams[index].first_row,
                                    .row_count = asked->row_count,
                                    .folds = asked->folds};
    const bool is_too_many = calls_in_steps(body, stream) > CALLS_MAX;
    json_t *track =
        json_pack("{so s[] sI sb sb sb sI}", "stream_id", json_sprintf("%lld", (long long)stream),
                  "rows", "levels", (json_int_t)0, "is_folded", 0, "truncated", 0, "is_too_many",
                  is_too_many, "calls_in_blocks", (json_int_t)0);
    if (track == NULL || json_array_append_new(tracks, track) != 0) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    return is_too_many ? SJ_OK : sj_calls_picture_draw(picture, &window, track, error);
}

/* Adds the single calls of the request's streams to the response. */
static sj_status add_tracks(const timeline *asked, json_t *body, sj_error *error)
{
    sj_calls_picture *picture = NULL;
    SJ_TRY(sj_calls_picture_new(asked->database, asked->session_id, &picture, error));
    json_t *tracks = json_array();
    sj_status status = json_object_set_new(body, "tracks", tracks) == 0
                           ? SJ_OK
                           : sj_fail(error, SJ_ENOMEM, "out of memory");
    for (size_t i = 0; status == SJ_OK && i < asked->stream_count; i++) {
        status = add_track(asked, i, body, picture, tracks, error);
    }
    if (status == SJ_OK) {
        status = sj_calls_picture_finish(picture, body, error);
    }
    sj_calls_picture_free(picture);
    return status;
}

static sj_status draw(const timeline *asked, json_t **body, sj_error *error)
{
    SJ_TRY(sj_rows_require_session(asked->database, asked->session_id, error));
    SJ_TRY(list_steps(asked, body, error));
    SJ_TRY(add_paths(asked->database, *body, error));
    return asked->has_streams ? add_tracks(asked, *body, error) : SJ_OK;
}

static int keep_going(void *context)
{
    return !sj_request_is_wanted(context);
}

static sj_status answer_timeline(sj_request *request, json_t **body, sj_error *error)
{
    timeline asked;
    SJ_TRY(read_request(request, &asked, error));
    SJ_TRY(sj_database_open_reader(request->context->database_path, &asked.database, error));
    sqlite3_progress_handler(asked.database, 2000, keep_going, request);
    const sj_status status = draw(&asked, body, error);
    sqlite3_close(asked.database);
    if (status != SJ_OK) {
        json_decref(*body);
        *body = NULL;
    }
    return status;
}

const sj_route sj_route_timeline = {.pattern = "/api/v1/sessions/{id}/timeline",
                                    .role = SJ_ROLE_READER,
                                    .is_slow = true,
                                    .has_own_database = true,
                                    .run = answer_timeline};
