/* SQL of whoever may read: one statement that reads, or a question of schema/queries, on a
 * connection of its own behind the guard (sql_guard.h), with limits of time, rows and bytes.
 *
 * Values are as SQLite has them, so integers may pass 2^53: those come as decimal strings. */
#include "collector-server/http/cluster_answers.h"
#include "collector-server/http/context.h"
#include "collector-server/http/parameters.h"
#include "collector-server/query/json_rows.h"
#include "collector-server/query/query.h"
#include "collector-server/query/shipped_queries.h"
#include "collector-server/query/sql_guard.h"
#include "collector-server/store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    SQL_BYTES_MAX = 24 << 10,
    ROWS_DEFAULT = 1000,
    ROWS_MAX = 20000,
    TIME_DEFAULT_MS = 5000,
    TIME_MAX_MS = 30000,
    VALUE_BYTES_MAX = 1 << 20,
    ANSWER_BYTES_MAX = 8 << 20,
    NAME_BYTES = 80,
    DEFAULT_BYTES = 256
};

typedef struct sql_answer {
    const sj_request *request;
    sqlite3 *database;
    const sj_shipped_query *query; /* whose defaults hold; NULL: none */
    json_t *columns;
    json_t *rows;
    size_t bytes; /* of texts and blobs in `rows`, and 16 for each value */
    bool is_full;
    bool is_short_of_memory;
    bool is_of_fetched; /* sums of a cluster that were fetched, and nothing else of it */
} sql_answer;

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static bool take_columns(sql_answer *answer, sqlite3_stmt *statement)
{
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        const char *name = sqlite3_column_name(statement, i);
        json_t *column = json_string(name);
        json_array_append_new(answer->columns, column != NULL ? column : json_string("?"));
    }
    return true;
}

static bool take_row(void *context, sqlite3_stmt *statement, bool values)
{
    sql_answer *answer = context;
    if (!values) {
        return take_columns(answer, statement);
    }
    json_t *row = json_array();
    for (int i = 0; row != NULL && i < sqlite3_column_count(statement); i++) {
        const int type = sqlite3_column_type(statement, i);
        const bool is_long = type == SQLITE_TEXT || type == SQLITE_BLOB;
        answer->bytes += 16 + (is_long ? (size_t)sqlite3_column_bytes(statement, i) : 0);
        if (json_array_append_new(row, sj_rows_plain_value(statement, i)) != 0) {
            json_decref(row);
            row = NULL;
        }
    }
    answer->is_short_of_memory = json_array_append_new(answer->rows, row) != 0;
    answer->is_full = answer->bytes > ANSWER_BYTES_MAX;
    return !answer->is_short_of_memory && !answer->is_full;
}

/* "last" and a number name a session. */
static const char latest_sql[] = "SELECT max(session_id) FROM sessions";

static sj_status bind_session(const sql_answer *answer, sqlite3_stmt *statement, int number,
                              const char *text, sj_error *error)
{
    int64_t session = 0;
    sqlite3_stmt *latest = NULL;
    if (text != NULL && strcmp(text, "last") != 0) {
        if (!sj_parse_whole_number(text, INT64_MAX, &session)) {
            return sj_fail(error, SJ_EINVAL, "the session has to be a number or \"last\"");
        }
    } else {
        SJ_TRY(sj_rows_prepare(answer->database, latest_sql, &latest, error));
        session = sqlite3_step(latest) == SQLITE_ROW ? sqlite3_column_int64(latest, 0) : 0;
        sqlite3_finalize(latest);
    }
    sqlite3_bind_int64(statement, number, session);
    return SJ_OK;
}

static void bind_text(sqlite3_stmt *statement, int number, const char *text)
{
    char *end = NULL;
    const long long whole = strtoll(text, &end, 10);
    if (*text != '\0' && *end == '\0' && strlen(text) < 19) {
        sqlite3_bind_int64(statement, number, whole);
        return;
    }
    const double real = strtod(text, &end);
    if (*text != '\0' && *end == '\0' && strspn(text, "+-.0123456789eE") == strlen(text)) {
        sqlite3_bind_double(statement, number, real);
        return;
    }
    sqlite3_bind_text(statement, number, text, -1, SQLITE_TRANSIENT);
}

/* The parameter :NAME of a statement is p.NAME of the address. */
static sj_status bind_one(const sql_answer *answer, sqlite3_stmt *statement, int number,
                          sj_error *error)
{
    char key[NAME_BYTES];
    char value[DEFAULT_BYTES];
    const char *text = NULL;
    const char *name = sqlite3_bind_parameter_name(statement, number);
    snprintf(key, sizeof(key), "p.%s", name != NULL ? name + 1 : "");
    SJ_TRY(sj_parameter_text(answer->request, key, SQL_BYTES_MAX, &text, error));
    if (text == NULL && name != NULL && answer->query != NULL &&
        sj_shipped_query_default(answer->query, name + 1, value, sizeof(value))) {
        text = value;
    }
    if (name != NULL && strcmp(name + 1, "session") == 0) {
        return bind_session(answer, statement, number, text, error);
    }
    if (text == NULL) {
        return sj_fail(error, SJ_EINVAL, "the statement has the parameter %s: it needs a value",
                       name != NULL ? name : "?");
    }
    bind_text(statement, number, text);
    return SJ_OK;
}

static sj_status bind_all(void *context, sqlite3_stmt *statement, sj_error *error)
{
    for (int i = 1; i <= sqlite3_bind_parameter_count(statement); i++) {
        SJ_TRY(bind_one(context, statement, i, error));
    }
    return SJ_OK;
}

static const char of_fetched[] = "asked of what was fetched of the cluster: its sessions, and sums "
                                 "of those that were looked at; "
                                 "single calls, threads, findings and commands are in the labs";

static sj_status make_body(sql_answer *answer, const sj_sql_outcome *outcome, int64_t started_us,
                           json_t **body, sj_error *error)
{
    char *warnings = answer->is_of_fetched ? sqlite3_mprintf("%s", of_fetched)
                                           : sj_query_take_warnings(answer->database);
    if (answer->is_short_of_memory) {
        sqlite3_free(warnings);
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    *body =
        json_pack("{sO sO sb sb sI ss%}", "columns", answer->columns, "rows", answer->rows,
                  "truncated", outcome->truncated || answer->is_full, "is_full", answer->is_full,
                  "elapsed_us", (json_int_t)(now_us() - started_us), "warnings",
                  warnings != NULL ? warnings : "", warnings != NULL ? strlen(warnings) : 0);
    sqlite3_free(warnings);
    return *body != NULL ? SJ_OK : sj_fail(error, SJ_ENOMEM, "out of memory");
}

static sj_status run_guarded(sj_request *request, sql_answer *answer, const sj_sql_limits *limits,
                             const char *sql, json_t **body, sj_error *error)
{
    sj_sql_guard *guard = NULL;
    sj_sql_outcome outcome;
    const int64_t started_us = now_us();
    SJ_TRY(sj_sql_guard_new(answer->database, limits, &guard, error));
    sj_sql_guard_set_prepared(guard, bind_all, answer);
    sj_sql_guard_set_watch(guard, sj_answer_goes_on, request);
    sj_status status = sj_sql_guard_run(guard, sql, take_row, answer, &outcome, error);
    if (status == SJ_OK) {
        status = make_body(answer, &outcome, started_us, body, error);
    }
    sj_sql_guard_free(guard);
    return status;
}

static sj_status find_sql(sj_request *request, sql_answer *answer, const char **sql,
                          sj_error *error)
{
    const char *name = NULL;
    SJ_TRY(sj_parameter_text(request, "sql", SQL_BYTES_MAX, sql, error));
    SJ_TRY(sj_parameter_text(request, "query", NAME_BYTES, &name, error));
    if ((*sql == NULL) == (name == NULL)) {
        return sj_fail(error, SJ_EINVAL, "give 'sql', or the name of a question as 'query'");
    }
    if (name != NULL) {
        answer->query = sj_shipped_query_find(name);
        if (answer->query == NULL) {
            return sj_fail(error, SJ_ENOTFOUND, "there is no question of that name");
        }
        *sql = answer->query->text;
    }
    return SJ_OK;
}

/* open_database: with engine=cluster the answer of the cluster is read instead. */
static sj_status open_database(sj_request *request, sql_answer *answer, const sj_sql_limits *limits,
                               const char **sql, sj_error *error)
{
    const char *engine = NULL;
    SJ_TRY(sj_parameter_text(request, "engine", NAME_BYTES, &engine, error));
    if (engine != NULL && strcmp(engine, "cluster") == 0) {
        SJ_TRY(sj_cluster_answers_ask(request, *sql, limits->max_rows + 1, limits->time_ms,
                                      &answer->database, error));
        *sql = "SELECT * FROM answer";
        return SJ_OK;
    }
    if (engine != NULL) {
        return sj_fail(error, SJ_EINVAL, "'engine' has to be \"cluster\" or left out");
    }
    SJ_TRY(sj_cluster_answers_prepare(request, false, error));
    answer->is_of_fetched = request->context->mirror != NULL;
    return sj_query_open_reader(request->context->database_path, request->context->sums,
                                &answer->database, error);
}

static sj_status answer_sql(sj_request *request, json_t **body, sj_error *error)
{
    const char *sql = NULL;
    sql_answer answer = {.request = request};
    sj_sql_limits limits = {.max_value_bytes = VALUE_BYTES_MAX};
    SJ_TRY(find_sql(request, &answer, &sql, error));
    SJ_TRY(sj_parameter_number(request, "rows", (sj_parameter_range){1, ROWS_MAX, ROWS_DEFAULT},
                               &limits.max_rows, error));
    SJ_TRY(sj_parameter_number(request, "ms", (sj_parameter_range){1, TIME_MAX_MS, TIME_DEFAULT_MS},
                               &limits.time_ms, error));
    SJ_TRY(open_database(request, &answer, &limits, &sql, error));
    answer.columns = json_array();
    answer.rows = json_array();
    const sj_status status = run_guarded(request, &answer, &limits, sql, body, error);
    json_decref(answer.columns);
    json_decref(answer.rows);
    sqlite3_close(answer.database);
    return status;
}

const sj_route sj_route_sql = {
    .pattern = "/api/v1/sql", .is_slow = true, .has_own_database = true, .run = answer_sql};

/* All values of one key of a question. */
static json_t *fields_of(const sj_shipped_query *query, const char *key)
{
    char value[1024];
    json_t *values = json_array();
    for (unsigned i = 0; sj_shipped_query_field(query, key, i, value, sizeof(value)); i++) {
        json_array_append_new(values, json_string(value));
    }
    return values;
}

static sj_status answer_queries(sj_request *request, json_t **body, sj_error *error)
{
    size_t count = 0;
    const sj_shipped_query *queries = sj_shipped_queries(&count);
    json_t *items = json_array();
    (void)request;
    for (size_t i = 0; i < count; i++) {
        json_t *parameters = fields_of(&queries[i], "parameter");
        json_t *columns = fields_of(&queries[i], "column");
        json_t *title = fields_of(&queries[i], "title");
        json_t *question = fields_of(&queries[i], "question");
        json_array_append_new(
            items, json_pack("{ss sO sO so so ss}", "name", queries[i].name, "title",
                             json_array_get(title, 0), "question", json_array_get(question, 0),
                             "parameters", parameters, "columns", columns, "sql", queries[i].text));
        json_decref(title);
        json_decref(question);
    }
    *body = json_pack("{so sb}", "items", items, "truncated", 0);
    return *body != NULL ? SJ_OK : sj_fail(error, SJ_ENOMEM, "out of memory");
}

const sj_route sj_route_queries = {.pattern = "/api/v1/queries", .run = answer_queries};
