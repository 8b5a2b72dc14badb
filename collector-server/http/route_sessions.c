#include "collector-server/http/route.h"

#include "collector-server/http/parameters.h"
#include "collector-server/query/json_rows.h"
#include "collector-server/query/session_columns.h"

enum { LIMIT_DEFAULT = 200, LIMIT_MAX = 500, SEARCH_BYTES_MAX = 200 };

/* ?1: the text to find, NULL for every session. */
#define MATCHES                                                                                    \
    "(?1 IS NULL OR instr(lower(s.command || char(10) || s.name || char(10) || s.state ||"         \
    " char(10) || s.tags || char(10) || d.name || char(10) || d.model || char(10) || d.os),"       \
    " lower(?1)) > 0)"

/* total() and not sum(): what a device claims to have lost may overflow a sum. */
static const char totals_sql[] =
    "SELECT (SELECT count(*) FROM sessions) AS sessions, count(*) AS matching,"
    " count(*) FILTER (WHERE s.state = 'recording') AS recording,"
    " count(DISTINCT s.device_id) AS devices, CAST(total(s.stored_calls) AS INTEGER) AS calls,"
    " coalesce(max(s.stored_calls), 0) AS most_calls,"
    " CAST(total(max(s.lost_calls, coalesce(s.device_lost_calls, 0))) AS INTEGER) AS lost_calls"
    " FROM sessions s JOIN devices d ON d.device_id = s.device_id WHERE " MATCHES;

static sj_status add_totals(sqlite3 *database, const char *search, json_t *body, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    json_t *rows = NULL;
    SJ_TRY(sj_rows_prepare(database, totals_sql, &statement, error));
    sqlite3_bind_text(statement, 1, search, -1, SQLITE_STATIC);
    SJ_TRY(sj_rows_take(statement, 1, &rows, NULL, error));
    json_object_set(body, "totals", json_array_get(rows, 0));
    json_decref(rows);
    return SJ_OK;
}

static sj_status list_sessions(sj_request *request, const char *search, json_t **body,
                               sj_error *error)
{
    int64_t limit;
    int64_t before;
    sqlite3_stmt *statement = NULL;
    SJ_TRY(sj_parameter_number(request, "limit", (sj_parameter_range){1, LIMIT_MAX, LIMIT_DEFAULT},
                               &limit, error));
    SJ_TRY(sj_parameter_number(request, "before", (sj_parameter_range){1, INT64_MAX, INT64_MAX},
                               &before, error));
    SJ_TRY(sj_rows_prepare(request->database,
                           SJ_SESSION_SELECT " WHERE " MATCHES " AND s.session_id < ?2"
                                             " ORDER BY s.session_id DESC LIMIT ?3",
                           &statement, error));
    sqlite3_bind_text(statement, 1, search, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, before);
    sqlite3_bind_int64(statement, 3, limit + 1);
    return sj_rows_list(statement, (size_t)limit, body, error);
}

/* Newest first; `before` continues a list that was cut. The totals are of all matching sessions,
 * also of those that the list leaves out. */
static sj_status answer_sessions(sj_request *request, json_t **body, sj_error *error)
{
    const char *search;
    SJ_TRY(sj_parameter_text(request, "search", SEARCH_BYTES_MAX, &search, error));
    SJ_TRY(list_sessions(request, search, body, error));
    const sj_status status = add_totals(request->database, search, *body, error);
    if (status != SJ_OK) {
        json_decref(*body);
        *body = NULL;
    }
    return status;
}

const sj_route sj_route_sessions = {.pattern = "/api/v1/sessions", .run = answer_sessions};
