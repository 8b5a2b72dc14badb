/* Returns values that the sessions of a list have: device, state, app, build, tag and mark, each
 * with its number of sessions, sorted by that number, descending. Omits the recorder's own tag. */
#include "collector-server/http/session_filters.h"
#include "collector-server/query/json_rows.h"
#include "schema/queries/http/facets.h"

enum { VALUES_MAX = 50, FACETS = 6 };

static sj_status answer_facets(sj_request *request, json_t **body, sj_error *error)
{
    sj_session_filters filters = {0};
    sqlite3_stmt *statement = NULL;
    SJ_TRY(sj_session_filters_read(request, &filters, error));
    SJ_TRY(sj_rows_prepare(request->database, sj_facets_sql, &statement, error));
    sj_session_filters_bind(&filters, statement);
    sqlite3_bind_int64(statement, SJ_SESSION_FILTERS + 1, VALUES_MAX);
    return sj_rows_list(statement, (size_t)VALUES_MAX * FACETS, body, error);
}

const sj_route sj_route_facets = {.pattern = "/api/v1/sessions/facets",
                                  .role = SJ_ROLE_READER,
                                  .is_slow = true,
                                  .run = answer_facets};
