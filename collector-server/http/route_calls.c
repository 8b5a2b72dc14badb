/* Returns the calls of one stream that begin in a time window or were open at its start, as bars
 * (calls_picture.h). */
#include "collector-server/http/calls_picture.h"
#include "collector-server/http/context.h"
#include "collector-server/http/parameters.h"
#include "collector-server/query/json_rows.h"
#include "collector-server/query/query.h"

enum { WIDTH_DEFAULT = 1000 };

#define TIME_MAX_NS INT64_C(999999999999999999)

static int keep_going(void *context)
{
    return !sj_request_is_wanted(context);
}

static sj_status draw(sqlite3 *database, int64_t session, const sj_calls_window *window,
                      json_t *body, sj_error *error)
{
    sj_calls_picture *picture = NULL;
    SJ_TRY(sj_rows_require_session(database, session, error));
    SJ_TRY(sj_calls_picture_new(database, session, &picture, error));
    sj_status status = sj_calls_picture_draw(picture, window, body, error);
    if (status == SJ_OK) {
        status = sj_calls_picture_finish(picture, body, error);
    }
    sj_calls_picture_free(picture);
    return status;
}

static sj_status read_window(const sj_request *request, sj_calls_window *window, sj_error *error)
{
    int64_t folds;
    const sj_parameter_range time = {0, TIME_MAX_NS, 0};
    SJ_TRY(sj_parameter_number(request, "stream", (sj_parameter_range){1, INT64_MAX, 0},
                               &window->stream_id, error));
    SJ_TRY(sj_parameter_number(request, "from_ns", time, &window->from_ns, error));
    SJ_TRY(sj_parameter_number(request, "to_ns", (sj_parameter_range){0, TIME_MAX_NS, TIME_MAX_NS},
                               &window->to_ns, error));
    SJ_TRY(sj_parameter_number(request, "width",
                               (sj_parameter_range){1, SJ_CALLS_PICTURE_WIDTH, WIDTH_DEFAULT},
                               &window->width, error));
    SJ_TRY(sj_parameter_number(request, "first_row", (sj_parameter_range){0, INT32_MAX, 0},
                               &window->first_row, error));
    SJ_TRY(sj_parameter_number(
        request, "rows", (sj_parameter_range){1, SJ_CALLS_PICTURE_ROWS, SJ_CALLS_PICTURE_ROWS},
        &window->row_count, error));
    SJ_TRY(sj_parameter_number(request, "fold", (sj_parameter_range){0, 1, 0}, &folds, error));
    window->folds = folds != 0;
    return window->stream_id == 0 || window->to_ns < window->from_ns
               ? sj_fail(error, SJ_EINVAL, "'stream' is missing, or 'to_ns' lies before 'from_ns'")
               : SJ_OK;
}

static sj_status answer_calls(sj_request *request, json_t **body, sj_error *error)
{
    sj_calls_window window = {0};
    sqlite3 *database = NULL;
    SJ_TRY(read_window(request, &window, error));
    SJ_TRY(sj_database_open_reader(request->context->database_path, &database, error));
    sqlite3_progress_handler(database, 2000, keep_going, request);
    *body = json_object();
    const sj_status status = draw(database, request->id, &window, *body, error);
    sqlite3_close(database);
    if (status != SJ_OK) {
        json_decref(*body);
        *body = NULL;
    }
    return status;
}

const sj_route sj_route_calls = {.pattern = "/api/v1/sessions/{id}/calls",
                                 .role = SJ_ROLE_READER,
                                 .is_slow = true,
                                 .has_own_database = true,
                                 .run = answer_calls};
