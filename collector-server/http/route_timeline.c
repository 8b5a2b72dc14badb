/* Returns what the threads of a session did over time. For each stream, it reads the coarsest
 * level that has a step for at least every second pixel, or else the finest level. Steps that
 * begin in the same pixel are merged into one row, so a response has at most `width` rows for
 * each stream. It also contains the call paths that were open at the start of rows, with all
 * their callers. So one response is enough to draw. */
#include "collector-server/http/parameters.h"
#include "collector-server/query/json_rows.h"
#include "schema/queries/http/timeline.h"

#include <stdlib.h>

enum { WIDTH_DEFAULT = 1000, WIDTH_MAX = 4000, ROWS_MAX = 20000, PATHS_MAX = 20000 };

#define TIME_MAX_NS INT64_C(999999999999999999)

/* Adds the call paths of the rows, and those of their callers, to the response. */
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

static sj_status answer_timeline(sj_request *request, json_t **body, sj_error *error)
{
    int64_t from_ns;
    int64_t to_ns;
    int64_t width;
    sqlite3_stmt *statement = NULL;
    SJ_TRY(sj_parameter_number(request, "from_ns", (sj_parameter_range){0, TIME_MAX_NS, 0},
                               &from_ns, error));
    SJ_TRY(sj_parameter_number(request, "to_ns", (sj_parameter_range){0, TIME_MAX_NS, TIME_MAX_NS},
                               &to_ns, error));
    SJ_TRY(sj_parameter_number(request, "width", (sj_parameter_range){1, WIDTH_MAX, WIDTH_DEFAULT},
                               &width, error));
    SJ_TRY(sj_rows_require_session(request->database, request->id, error));
    SJ_TRY(sj_rows_prepare(request->database, sj_timeline_steps_sql, &statement, error));
    sqlite3_bind_int64(statement, 1, request->id);
    sqlite3_bind_int64(statement, 2, from_ns);
    sqlite3_bind_int64(statement, 3, to_ns);
    sqlite3_bind_int64(statement, 4, width);
    sqlite3_bind_int64(statement, 5, ROWS_MAX + 1);
    SJ_TRY(sj_rows_list(statement, ROWS_MAX, body, error));
    return add_paths(request->database, *body, error);
}

const sj_route sj_route_timeline = {.pattern = "/api/v1/sessions/{id}/timeline",
                                    .role = SJ_ROLE_READER,
                                    .is_slow = true,
                                    .run = answer_timeline};
