/* Runs SQL: one statement that reads, for the role analyst, or a named one of schema/queries, for
 * the role reader: a shipped query or a question of the dashboard. A separate process answers it
 * (question_pool.h), with limits of time, rows and bytes. */
#include "collector-server/http/cluster_results.h"
#include "collector-server/http/context.h"
#include "collector-server/http/parameters.h"
#include "collector-server/http/question.h"
#include "collector-server/http/reply.h"
#include "collector-server/http/web_questions.h"
#include "collector-server/query/shipped_queries.h"

#include <string.h>

enum {
    SQL_BYTES_MAX = 24 << 10,
    ROWS_DEFAULT = 1000,
    ROWS_MAX = 20000,
    TIME_DEFAULT_MS = 5000,
    TIME_MAX_MS = 30000,
    NAME_BYTES = 80
};

static const char of_fetched[] = "asked of what was fetched of the cluster: its sessions, and sums "
                                 "of those that were looked at; "
                                 "single calls, threads, findings and commands are in the labs";

/* Adds a value: the URL's p.NAME is the statement's parameter :NAME. */
static enum MHD_Result add_value(void *context, enum MHD_ValueKind kind, const char *key,
                                 const char *value)
{
    (void)kind;
    if (strncmp(key, "p.", 2) == 0 && value != NULL && value[0] != '\0') {
        json_object_set_new(context, key + 2, json_string(value));
    }
    return MHD_YES;
}

static sj_status no_such_question(sj_error *error)
{
    return sj_fail(error, SJ_ENOTFOUND, "no question has that name");
}

/* Returns the statement of a shipped query or of a question of the dashboard, or NULL. */
static const char *find_named(const char *name)
{
    const sj_shipped_query *query = sj_shipped_query_find(name);
    const sj_web_question *question = sj_web_question_find(name);
    return query != NULL ? query->text : question != NULL ? question->sql : NULL;
}

static sj_status find_sql(sj_request *request, const char **sql, const char **name, sj_error *error)
{
    SJ_TRY(sj_parameter_text(request, "sql", SQL_BYTES_MAX, sql, error));
    SJ_TRY(sj_parameter_text(request, "query", NAME_BYTES, name, error));
    if ((*sql == NULL) == (*name == NULL)) {
        return sj_fail(error, SJ_EINVAL, "give 'sql', or the name of a question as 'query'");
    }
    const bool is_own = *sql != NULL;
    *sql = is_own ? *sql : find_named(*name);
    if (*sql == NULL) {
        return no_such_question(error);
    }
    request->action = "sql";
    request->object = *sql;
    request->is_question = true;
    return is_own ? sj_request_needs(request, SJ_ROLE_ANALYST, error) : SJ_OK;
}

/* Builds the question of a request (question.h); owned by the caller. */
static sj_status read_question(sj_request *request, json_t **question, sj_error *error)
{
    const char *sql = NULL;
    const char *name = NULL;
    int64_t rows = 0;
    int64_t time_ms = 0;
    SJ_TRY(find_sql(request, &sql, &name, error));
    SJ_TRY(sj_parameter_number(request, "rows", (sj_parameter_range){1, ROWS_MAX, ROWS_DEFAULT},
                               &rows, error));
    SJ_TRY(sj_parameter_number(request, "ms", (sj_parameter_range){1, TIME_MAX_MS, TIME_DEFAULT_MS},
                               &time_ms, error));
    json_t *values = json_object();
    MHD_get_connection_values(request->connection, MHD_GET_ARGUMENT_KIND, add_value, values);
    *question = json_pack("{ss ss* sI sI so ss*}", "sql", sql, "query", name, "rows",
                          (json_int_t)rows, "ms", (json_int_t)time_ms, "values", values, "warning",
                          request->context->mirror != NULL ? of_fetched : NULL);
    return *question != NULL ? SJ_OK
                             : sj_fail(error, SJ_EINVAL, "the statement or a value is not UTF-8");
}

/* Sends a question to the cluster, which has its own limits. Then reads the table with its
 * result. */
static sj_status ask_cluster(sj_request *request, json_t *question, json_t **body, sj_error *error)
{
    const char *sql = json_string_value(json_object_get(question, "sql"));
    const int64_t rows = json_integer_value(json_object_get(question, "rows"));
    const int64_t time_ms = json_integer_value(json_object_get(question, "ms"));
    sqlite3 *result = NULL;
    SJ_TRY(sj_cluster_results_ask(request, sql, rows + 1, time_ms, &result, error));
    json_object_set_new(question, "sql", json_string("SELECT * FROM answer"));
    json_object_del(question, "warning");
    const sj_status status =
        sj_question_run(result, question, 0, sj_request_is_wanted, request, body, error);
    sqlite3_close(result);
    return status;
}

static sj_status ask_process(sj_request *request, const json_t *question, sj_error *error)
{
    char *text = NULL;
    SJ_TRY(sj_cluster_results_prepare(request, false, error));
    SJ_TRY(sj_question_pool_ask(request->context->questions, question, sj_request_is_wanted,
                                request, &text, error));
    request->file = sj_reply_make_text(request->connection, text);
    return request->file != NULL ? SJ_OK : sj_fail(error, SJ_ENOMEM, "out of memory");
}

/* Answers from the database, or from the cluster with engine=cluster. */
static sj_status answer_sql(sj_request *request, json_t **body, sj_error *error)
{
    const char *engine = NULL;
    json_t *question = NULL;
    SJ_TRY(sj_parameter_text(request, "engine", NAME_BYTES, &engine, error));
    if (engine != NULL && strcmp(engine, "cluster") != 0) {
        return sj_fail(error, SJ_EINVAL, "'engine' has to be \"cluster\" or left out");
    }
    SJ_TRY(read_question(request, &question, error));
    const sj_status status = engine != NULL ? ask_cluster(request, question, body, error)
                                            : ask_process(request, question, error);
    json_decref(question);
    return status;
}

const sj_route sj_route_sql = {.pattern = "/api/v1/sql",
                               .role = SJ_ROLE_READER,
                               .is_slow = true,
                               .has_own_database = true,
                               .run = answer_sql};

/* Returns all values of one key of a shipped query. */
static json_t *fields_of(const sj_shipped_query *query, const char *key)
{
    char value[1024];
    json_t *values = json_array();
    for (unsigned i = 0; sj_shipped_query_field(query, key, i, value, sizeof(value)); i++) {
        json_array_append_new(values, json_string(value));
    }
    return values;
}

static json_t *describe_shipped(const sj_shipped_query *query)
{
    json_t *title = fields_of(query, "title");
    json_t *question = fields_of(query, "question");
    json_t *described = json_pack("{ss sO sO so so ss}", "name", query->name, "title",
                                  json_array_get(title, 0), "question", json_array_get(question, 0),
                                  "parameters", fields_of(query, "parameter"), "columns",
                                  fields_of(query, "column"), "sql", query->text);
    json_decref(title);
    json_decref(question);
    return described;
}

/* Describes a question of the dashboard. Its panel has the title and explains the columns. */
static json_t *describe_panel(const sj_web_question *question)
{
    json_t *parameters = json_array();
    for (size_t i = 0; i < question->parameter_count; i++) {
        json_array_append_new(parameters, json_string(question->parameters[i].name));
    }
    return json_pack("{ss ss ss so s[] ss}", "name", question->name, "title", question->name,
                     "question", "", "parameters", parameters, "columns", "sql", question->sql);
}

/* Answers with the question of one name, which may be one of the dashboard. */
static sj_status describe_named(const char *name, json_t *items, sj_error *error)
{
    const sj_shipped_query *query = sj_shipped_query_find(name);
    const sj_web_question *question = sj_web_question_find(name);
    if (query == NULL && question == NULL) {
        return no_such_question(error);
    }
    json_array_append_new(items,
                          query != NULL ? describe_shipped(query) : describe_panel(question));
    return SJ_OK;
}

static sj_status answer_queries(sj_request *request, json_t **body, sj_error *error)
{
    size_t count = 0;
    const char *name = NULL;
    const sj_shipped_query *queries = sj_shipped_queries(&count);
    SJ_TRY(sj_parameter_text(request, "name", NAME_BYTES, &name, error));
    json_t *items = json_array();
    sj_status status = name != NULL ? describe_named(name, items, error) : SJ_OK;
    for (size_t i = 0; name == NULL && i < count; i++) {
        json_array_append_new(items, describe_shipped(&queries[i]));
    }
    *body = json_pack("{so sb}", "items", items, "truncated", 0);
    return status != SJ_OK ? status
           : *body != NULL ? SJ_OK
                           : sj_fail(error, SJ_ENOMEM, "out of memory");
}

const sj_route sj_route_queries = {
    .pattern = "/api/v1/queries", .role = SJ_ROLE_READER, .run = answer_queries};
