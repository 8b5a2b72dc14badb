/* Design notes: the inner SELECT sorts and limits by one key. The outer one computes quantiles
 * (which decode histograms) and means, only for the returned rows. */
#include "collector-server/http/route.h"

#include "collector-server/http/parameters.h"
#include "collector-server/query/json_rows.h"
#include "schema/queries/http/functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT_DEFAULT = 200, LIMIT_MAX = 1000, OFFSET_MAX = 100000000, SEARCH_MAX_BYTES = 200 };

typedef struct sort_key {
    const char *name;
    const char *expression;
    const char *first; /* default direction */
} sort_key;

static const sort_key sort_keys[] = {
    {"self", "x.self_ns", "DESC"},
    {"total", "x.total_ns", "DESC"},
    {"calls", "x.calls", "DESC"},
    {"mean", sj_functions_by_mean_sql, "DESC"},
    {"min", "x.min_ns", "DESC"},
    {"max", "x.max_ns", "DESC"},
    {"p50", sj_functions_by_p50_sql, "DESC"},
    {"p90", sj_functions_by_p90_sql, "DESC"},
    {"p95", sj_functions_by_p95_sql, "DESC"},
    {"p99", sj_functions_by_p99_sql, "DESC"},
    {"name", "f.name COLLATE NOCASE", "ASC"},
};

typedef struct function_query {
    const sort_key *key;
    const char *direction;
    int64_t limit;
    int64_t offset;
    char pattern[2 * SEARCH_MAX_BYTES + 3]; /* LIKE pattern */
} function_query;

/* Makes "%search%" with LIKE's special characters escaped, or "%" if `search` is NULL. */
static void make_pattern(const char *search, char *pattern)
{
    *pattern++ = '%';
    if (search != NULL) {
        for (; *search != '\0'; search++) {
            if (strchr("%_\\", *search) != NULL) {
                *pattern++ = '\\';
            }
            *pattern++ = *search;
        }
        *pattern++ = '%';
    }
    *pattern = '\0';
}

static sj_status read_sort(const sj_request *request, function_query *query, sj_error *error)
{
    const char *sort = NULL;
    const char *order = NULL;
    SJ_TRY(sj_parameter_text(request, "sort", 16, &sort, error));
    SJ_TRY(sj_parameter_text(request, "order", 4, &order, error));
    query->key = NULL;
    for (size_t i = 0; i < sizeof(sort_keys) / sizeof(sort_keys[0]); i++) {
        if (strcmp(sort != NULL ? sort : "self", sort_keys[i].name) == 0) {
            query->key = &sort_keys[i];
        }
    }
    if (query->key == NULL) {
        return sj_fail(error, SJ_EINVAL,
                       "parameter 'sort' must be one of self, total, calls, mean, min, max, p50, "
                       "p90, p95, p99, name");
    }
    query->direction = query->key->first;
    if (order != NULL) {
        if (strcmp(order, "asc") != 0 && strcmp(order, "desc") != 0) {
            return sj_fail(error, SJ_EINVAL, "parameter 'order' must be asc or desc");
        }
        query->direction = order[0] == 'a' ? "ASC" : "DESC";
    }
    return SJ_OK;
}

static sj_status read_query(const sj_request *request, function_query *query, sj_error *error)
{
    const char *search = NULL;
    SJ_TRY(read_sort(request, query, error));
    SJ_TRY(sj_parameter_number(request, "limit", (sj_parameter_range){1, LIMIT_MAX, LIMIT_DEFAULT},
                               &query->limit, error));
    SJ_TRY(sj_parameter_number(request, "offset", (sj_parameter_range){0, OFFSET_MAX, 0},
                               &query->offset, error));
    SJ_TRY(sj_parameter_text(request, "search", SEARCH_MAX_BYTES, &search, error));
    make_pattern(search, query->pattern);
    return SJ_OK;
}

static void bind_query(sqlite3_stmt *statement, int64_t session, const function_query *query)
{
    sqlite3_bind_int64(statement, 1, session);
    sqlite3_bind_text(statement, 2, query->pattern, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 5, query->limit);
    sqlite3_bind_int64(statement, 6, query->offset);
}

static sj_status bind_clock(sqlite3 *database, sqlite3_stmt *into, int64_t session, sj_error *error)
{
    sqlite3_stmt *clock = NULL;
    SJ_TRY(sj_rows_prepare(
        database,
        "SELECT tick_ns_numerator, tick_ns_denominator FROM sessions WHERE session_id = ?1", &clock,
        error));
    sqlite3_bind_int64(clock, 1, session);
    if (sqlite3_step(clock) == SQLITE_ROW) {
        sqlite3_bind_int64(into, 3, sqlite3_column_int64(clock, 0));
        sqlite3_bind_int64(into, 4, sqlite3_column_int64(clock, 1));
    }
    sqlite3_finalize(clock);
    return SJ_OK;
}

static sj_status read_rows(const sj_request *request, const function_query *query, json_t **rows,
                           sj_error *error)
{
    char sql[sizeof(sj_functions_rows_sql) + 512];
    sqlite3_stmt *statement = NULL;
    snprintf(sql, sizeof(sql), sj_functions_rows_sql, query->key->expression, query->direction);
    SJ_TRY(sj_rows_prepare(request->database, sql, &statement, error));
    bind_query(statement, request->id, query);
    const sj_status status = bind_clock(request->database, statement, request->id, error);
    if (status != SJ_OK) {
        sqlite3_finalize(statement);
        return status;
    }
    return sj_rows_read(statement, (size_t)query->limit, rows, NULL, error);
}

static sj_status answer_functions(sj_request *request, json_t **body, sj_error *error)
{
    function_query query;
    sqlite3_stmt *statement = NULL;
    json_t *rows = NULL;
    json_t *totals = NULL;
    SJ_TRY(read_query(request, &query, error));
    SJ_TRY(sj_rows_require_session(request->database, request->id, error));
    SJ_TRY(sj_rows_prepare(request->database, sj_functions_totals_sql, &statement, error));
    sqlite3_bind_int64(statement, 1, request->id);
    sqlite3_bind_text(statement, 2, query.pattern, -1, SQLITE_STATIC);
    SJ_TRY(sj_rows_read(statement, 1, &totals, NULL, error));
    const sj_status status = read_rows(request, &query, &rows, error);
    if (status != SJ_OK) {
        json_decref(totals);
        return status;
    }
    json_t *sums = json_array_get(totals, 0);
    const json_int_t matching = json_integer_value(json_object_get(sums, "matching"));
    const bool truncated = query.offset + (int64_t)json_array_size(rows) < matching;
    *body = json_pack("{s:o, s:b, s:I, s:O}", "items", rows, "truncated", truncated, "offset",
                      (json_int_t)query.offset, "totals", sums);
    json_decref(totals);
    return *body != NULL ? SJ_OK : sj_fail(error, SJ_ENOMEM, "out of memory");
}

const sj_route sj_route_functions = {.pattern = "/api/v1/sessions/{id}/functions",
                                     .role = SJ_ROLE_READER,
                                     .is_slow = true,
                                     .run = answer_functions};
