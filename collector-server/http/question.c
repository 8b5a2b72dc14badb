/* Values are as in SQLite, but integers beyond 2^53 become decimal strings. */
#include "collector-server/http/question.h"

#include "collector-server/http/parameters.h"
#include "collector-server/http/web_questions.h"
#include "collector-server/query/json_rows.h"
#include "collector-server/query/query.h"
#include "collector-server/query/shipped_queries.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { VALUE_BYTES_MAX = 1 << 20, RESULT_BYTES_MAX = 8 << 20, DEFAULT_BYTES = 256 };

typedef struct question_result {
    const json_t *question;
    sqlite3 *database;
    const sj_shipped_query *query; /* the shipped query whose defaults apply; NULL: none */
    const sj_web_question *panel;  /* the question of the dashboard whose types apply; NULL: none */
    json_t *columns;
    json_t *rows;
    size_t bytes; /* size of texts and blobs in `rows`, plus 16 for each value */
    bool is_full;
    bool is_short_of_memory;
} question_result;

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static bool add_columns(question_result *result, sqlite3_stmt *statement)
{
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        const char *name = sqlite3_column_name(statement, i);
        json_t *column = json_string(name);
        json_array_append_new(result->columns, column != NULL ? column : json_string("?"));
    }
    return true;
}

/* Receives the columns, with `values` false, and then each row (sql_guard.h). Returns false to
 * stop. */
static bool add_row(void *context, sqlite3_stmt *statement, bool values)
{
    question_result *result = context;
    if (!values) {
        return add_columns(result, statement);
    }
    json_t *row = json_array();
    for (int i = 0; row != NULL && i < sqlite3_column_count(statement); i++) {
        const int type = sqlite3_column_type(statement, i);
        const bool is_long = type == SQLITE_TEXT || type == SQLITE_BLOB;
        result->bytes += 16 + (is_long ? (size_t)sqlite3_column_bytes(statement, i) : 0);
        if (json_array_append_new(row, sj_rows_plain_value(statement, i)) != 0) {
            json_decref(row);
            row = NULL;
        }
    }
    result->is_short_of_memory = json_array_append_new(result->rows, row) != 0;
    result->is_full = result->bytes > RESULT_BYTES_MAX;
    return !result->is_short_of_memory && !result->is_full;
}

/* Finds the session of "last". */
static const char latest_sql[] = "SELECT max(session_id) FROM sessions";

static sj_status bind_session(const question_result *result, sqlite3_stmt *statement, int number,
                              const char *text, sj_error *error)
{
    int64_t session = 0;
    sqlite3_stmt *latest = NULL;
    if (text != NULL && strcmp(text, "last") != 0) {
        if (!sj_parse_whole_number(text, INT64_MAX, &session)) {
            return sj_fail(error, SJ_EINVAL, "the session has to be a number or \"last\"");
        }
    } else {
        SJ_TRY(sj_rows_prepare(result->database, latest_sql, &latest, error));
        session = sqlite3_step(latest) == SQLITE_ROW ? sqlite3_column_int64(latest, 0) : 0;
        sqlite3_finalize(latest);
    }
    sqlite3_bind_int64(statement, number, session);
    return SJ_OK;
}

/* Binds a text as an integer or a real number if it has that form, else as text. */
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

static sj_status bind_one(const question_result *result, sqlite3_stmt *statement, int number,
                          sj_error *error)
{
    char value[DEFAULT_BYTES];
    const char *name = sqlite3_bind_parameter_name(statement, number);
    const json_t *values = json_object_get(result->question, "values");
    const char *text = json_string_value(json_object_get(values, name != NULL ? name + 1 : ""));
    if (text == NULL && name != NULL && result->query != NULL &&
        sj_shipped_query_default(result->query, name + 1, value, sizeof(value))) {
        text = value;
    }
    if (name != NULL && strcmp(name + 1, "session") == 0) {
        return bind_session(result, statement, number, text, error);
    }
    if (result->panel != NULL) {
        return sj_web_question_bind(result->panel, statement, number, text, error);
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

static sj_status make_body(question_result *result, const sj_sql_outcome *outcome,
                           int64_t started_us, json_t **body, sj_error *error)
{
    const char *given = json_string_value(json_object_get(result->question, "warning"));
    char *warnings =
        given != NULL ? sqlite3_mprintf("%s", given) : sj_query_read_warnings(result->database);
    if (result->is_short_of_memory) {
        sqlite3_free(warnings);
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    *body =
        json_pack("{sO sO sb sb sI ss%}", "columns", result->columns, "rows", result->rows,
                  "truncated", outcome->truncated || result->is_full, "is_full", result->is_full,
                  "elapsed_us", (json_int_t)(now_us() - started_us), "warnings",
                  warnings != NULL ? warnings : "", warnings != NULL ? strlen(warnings) : 0);
    sqlite3_free(warnings);
    return *body != NULL ? SJ_OK : sj_fail(error, SJ_ENOMEM, "out of memory");
}

sj_status sj_question_run(sqlite3 *database, const json_t *question, int64_t heap_bytes,
                          sj_sql_watch watch, void *watch_context, json_t **body, sj_error *error)
{
    const int64_t most_ms = json_integer_value(json_object_get(question, "ms"));
    const sj_sql_limits limits = {.time_ms = most_ms * SJ_QUESTION_WAITING_FACTOR,
                                  .processor_ms = most_ms,
                                  .max_rows = json_integer_value(json_object_get(question, "rows")),
                                  .max_value_bytes = VALUE_BYTES_MAX,
                                  .heap_bytes = heap_bytes};
    const char *name = json_string_value(json_object_get(question, "query"));
    const char *sql = json_string_value(json_object_get(question, "sql"));
    question_result result = {.question = question,
                              .database = database,
                              .query = name != NULL ? sj_shipped_query_find(name) : NULL,
                              .panel = name != NULL ? sj_web_question_find(name) : NULL,
                              .columns = json_array(),
                              .rows = json_array()};
    sj_sql_guard *guard = NULL;
    sj_sql_outcome outcome;
    const int64_t started_us = now_us();
    sj_status status = sj_sql_guard_new(database, &limits, &guard, error);
    if (status == SJ_OK) {
        sj_sql_guard_set_prepared(guard, bind_all, &result);
        sj_sql_guard_set_watch(guard, watch, watch_context);
        status = sj_sql_guard_run(guard, sql != NULL ? sql : "", add_row, &result, &outcome, error);
    }
    if (status == SJ_OK) {
        status = make_body(&result, &outcome, started_us, body, error);
    }
    sj_sql_guard_free(guard);
    json_decref(result.columns);
    json_decref(result.rows);
    return status;
}
