#include "collector-server/cli/cluster_sql.h"

#include "collector-server/cli/statement_runner.h"
#include "collector-server/forward/clickhouse.h"
#include "proto/base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_BYTES = 512, UUID_DIGITS = 32, NEEDS_BYTES = 32 };

static const char *find_given_value(const sj_cluster_sql *sql, const char *name)
{
    const size_t length = strlen(name);
    for (size_t i = sql->parameter_count; i-- > 0;) {
        if (strncmp(sql->parameters[i], name, length) == 0 && sql->parameters[i][length] == '=') {
            return sql->parameters[i] + length + 1;
        }
    }
    return NULL;
}

/* Finds the only session whose uuid begins with `text`, or the newest one for `last`. */
static sj_status choose_session(sj_cluster_sql *sql, const char *text, char *session,
                                sj_error *error)
{
    char statement[256];
    char *result = NULL;
    size_t size = 0;
    const bool is_last = strcmp(text, "last") == 0;
    if (!is_last &&
        (strlen(text) > UUID_DIGITS || strspn(text, "0123456789abcdef") != strlen(text))) {
        return sj_fail(error, SJ_EINVAL,
                       "%s: in a cluster give the beginning of a session's uuid, or `last`", text);
    }
    snprintf(statement, sizeof(statement),
             "SELECT session FROM sessions WHERE toString(session) LIKE '%.32s%%' "
             "ORDER BY started_realtime_ns DESC LIMIT %d",
             is_last ? "" : text, is_last ? 1 : 2);
    SJ_TRY(
        sj_clickhouse_ask(sql->target, statement, "", sql->limits.time_ms, &result, &size, error));
    sj_status status = SJ_OK;
    if (size < UUID_DIGITS) {
        status = sj_fail(error, SJ_ENOTFOUND, "there is no session %s in the cluster", text);
    } else if (size > UUID_DIGITS + 1) {
        status = sj_fail(error, SJ_EINVAL, "several sessions begin with %s", text);
    } else {
        snprintf(session, VALUE_BYTES, "%.32s", result);
    }
    free(result);
    return status;
}

/* True if the parameter is a pattern. A cluster query says LIKE where the lab's query says GLOB;
 * people write the GLOB pattern. */
static bool is_pattern(const sj_shipped_query *question, const char *name)
{
    char like[VALUE_BYTES];
    const int length = snprintf(like, sizeof(like), "LIKE :%s", name);
    const char *at = length < (int)sizeof(like) ? strstr(question->text, like) : NULL;
    return at != NULL && strchr("abcdefghijklmnopqrstuvwxyz_", at[length]) == NULL;
}

/* Callback of sj_cluster_fill. Returns the value of a parameter, NULL if it has none. A pattern
 * that cannot be converted becomes "". */
static const char *find_value(void *context, const char *name)
{
    sj_cluster_sql *sql = context;
    char *value = sql->held[0];
    const char *text = find_given_value(sql, name);
    if (strcmp(name, "session") == 0) {
        return sql->held[1];
    }
    if (text == NULL && sql->question != NULL &&
        sj_shipped_query_default(sql->question, name, value, VALUE_BYTES)) {
        text = value;
    }
    if (text == NULL || sql->question == NULL || !is_pattern(sql->question, name)) {
        return text;
    }
    char *pattern = sj_cluster_pattern(text);
    snprintf(value, VALUE_BYTES, "%s", pattern != NULL ? pattern : "");
    free(pattern);
    return value;
}

static bool reads_session(const char *text)
{
    return strstr(text, ":session") != NULL;
}

static sj_status choose_asked_session(sj_cluster_sql *sql, sj_error *error)
{
    const char *session = find_given_value(sql, "session");
    session = session != NULL ? session : sql->options->session;
    return choose_session(sql, session != NULL ? session : "last", sql->held[1], error);
}

/* The chosen session, as the cluster stores it. */
typedef struct session_place {
    char lab[UUID_DIGITS + 1];
    unsigned long long calls; /* calls that the lab stored */
    unsigned long long given; /* calls that the lab gave to the cluster */
} session_place;

static sj_status find_place(sj_cluster_sql *sql, session_place *place, sj_error *error)
{
    char statement[320];
    char *result = NULL;
    size_t size = 0;
    snprintf(
        statement, sizeof(statement),
        "SELECT lab, stored_calls, given FROM (SELECT lab, stored_calls, 1 AS one FROM sessions"
        " WHERE session = '%.32s') AS s ANY LEFT JOIN (SELECT count() AS given, 1 AS one FROM"
        " calls WHERE session = '%.32s') AS c USING one",
        sql->held[1], sql->held[1]);
    SJ_TRY(
        sj_clickhouse_ask(sql->target, statement, "", sql->limits.time_ms, &result, &size, error));
    *place = (session_place){0};
    const bool is_read =
        sscanf(result, "%32[0-9a-f]\t%llu\t%llu", place->lab, &place->calls, &place->given) == 3;
    free(result);
    return is_read ? SJ_OK
                   : sj_fail(error, SJ_ENOTFOUND, "session %s was removed meanwhile", sql->held[1]);
}

/* Fails with the reason why the cluster cannot run the query. If the query exists in labs and reads
 * one session, the message names the command to run in the lab. */
static sj_status refuse_question(sj_cluster_sql *sql, const char *why, sj_error *error)
{
    const char *name = sql->question->name;
    const sj_shipped_query *lab_query = sj_shipped_query_find(name);
    session_place place;
    if (lab_query == NULL || !reads_session(lab_query->text)) {
        return sj_fail(error, SJ_EUNSUPPORTED, "the query '%s' is not for a cluster: %s", name,
                       why);
    }
    SJ_TRY(choose_asked_session(sql, error));
    SJ_TRY(find_place(sql, &place, error));
    return sj_fail(error, SJ_EUNSUPPORTED,
                   "the query '%s' is not for a cluster: %s; in lab %s: sojourn sql --query %s "
                   "--session %s",
                   name, why, place.lab, name, sql->held[1]);
}

/* Writes to sql->note how many calls of the session its lab gave. Fails if the session has calls
 * and the lab gave none. */
static sj_status require_calls(sj_cluster_sql *sql, sj_error *error)
{
    session_place place;
    SJ_TRY(find_place(sql, &place, error));
    snprintf(sql->note, sizeof(sql->note), "over the %llu of %s of the session that its lab sent",
             place.given, SJ_COUNTED(place.calls, "call"));
    return place.given != 0 || place.calls == 0
               ? SJ_OK
               : sj_fail(error, SJ_EUNSUPPORTED,
                         "the query '%s' needs single calls, and the lab sent none of session %s; "
                         "in lab %s, run: sojourn forward --session %s calls %s",
                         sql->question->name, sql->held[1], place.lab, sql->held[1],
                         sql->cluster.url);
}

static sj_status fill_parameters(sj_cluster_sql *sql, const char *text, char **filled,
                                 sj_error *error)
{
    char needs[NEEDS_BYTES] = "";
    char why[VALUE_BYTES] = "";
    if (sql->question != NULL &&
        sj_shipped_query_field(sql->question, "refused", 0, why, sizeof(why))) {
        return refuse_question(sql, why, error);
    }
    SJ_TRY(reads_session(text) ? choose_asked_session(sql, error) : SJ_OK);
    if (sql->question != NULL &&
        sj_shipped_query_field(sql->question, "needs", 0, needs, sizeof(needs))) {
        SJ_TRY(require_calls(sql, error));
    }
    return sj_cluster_fill(text, find_value, sql, filled, error);
}

static sj_status run_query(sj_cluster_sql *sql, const char *text, sqlite3 **result, bool *is_cut,
                           sj_error *error)
{
    char *filled = NULL;
    SJ_TRY(sj_forward_clickhouse.check(sql->target, error));
    SJ_TRY(fill_parameters(sql, text, &filled, error));
    sj_status status = sj_clickhouse_count_shards(sql->target, &sql->answered, error);
    if (status == SJ_OK) {
        status = sj_cluster_ask(sql->target, filled, &sql->limits, result, is_cut, error);
    }
    free(filled);
    return status;
}

/* Prints which engine ran the query. Returns `code`, or SJ_EXIT_FAILED if it is not known which
 * shards took part. */
static int print_engine(const sj_cluster_sql *sql, int code)
{
    char line[512];
    sj_error error = {0};
    if (sj_clickhouse_explain(sql->target, sql->answered, line, sizeof(line), &error) != SJ_OK) {
        return sj_command_error(sql->command, SJ_EXIT_FAILED,
                                "which shards answered is not known: %s", error.text);
    }
    fprintf(stderr, "sojourn %s: %s\n", sql->command->name, line);
    return code;
}

static int print_result(sj_cluster_sql *sql, sqlite3 *result, bool is_cut)
{
    sqlite3_stmt *rows = NULL;
    if (sqlite3_prepare_v2(result, "SELECT * FROM answer", -1, &rows, NULL) != SQLITE_OK) {
        return sj_command_error(sql->command, SJ_EXIT_FAILED, "%s", sqlite3_errmsg(result));
    }
    const int code = sj_query_print(sql->command, sql->options, rows);
    if (is_cut) {
        fprintf(stderr, "sojourn %s: cut (--limit)\n", sql->command->name);
    }
    if (sql->note[0] != '\0') {
        fprintf(stderr, "sojourn %s: %s\n", sql->command->name, sql->note);
    }
    return print_engine(sql, code);
}

/* Checks that the query has all given parameters. A query that clusters refuse has no parameters in
 * its text for clusters, so it passes. Then `fill_parameters` fails with the reason. */
static int check_parameters(const sj_cluster_sql *sql)
{
    char why[VALUE_BYTES];
    return sql->question == NULL ||
                   sj_shipped_query_field(sql->question, "refused", 0, why, sizeof(why))
               ? SJ_EXIT_OK
               : sj_statement_runner_check_parameters(sql->command, sql->question, sql->parameters,
                                                      sql->parameter_count);
}

int sj_cluster_sql_run(sj_cluster_sql *sql, const char *statement, const char *question)
{
    sj_error error = {0};
    sqlite3 *result = NULL;
    bool is_cut = false;
    sql->question = question != NULL ? sj_cluster_question_find(question) : NULL;
    if (question != NULL && sql->question == NULL) {
        return sj_command_error(sql->command, SJ_EXIT_NOT_FOUND,
                                "there is no query '%s' for a cluster; --cluster URL --queries "
                                "lists them",
                                question);
    }
    int code = check_parameters(sql);
    if (code != SJ_EXIT_OK) {
        return code;
    }
    sj_status status = sj_forward_clickhouse.open(&sql->cluster, &sql->target, &error);
    if (status == SJ_OK) {
        status = run_query(sql, question != NULL ? sql->question->text : statement, &result,
                           &is_cut, &error);
    }
    code = status == SJ_OK ? print_result(sql, result, is_cut)
                           : sj_command_failed(sql->command, &error);
    sqlite3_close(result);
    sj_forward_clickhouse.close(sql->target);
    return code;
}

void sj_cluster_sql_list(void)
{
    size_t count = 0;
    const sj_shipped_query *questions = sj_cluster_questions(&count);
    for (size_t i = 0; i < count; ++i) {
        char text[VALUE_BYTES] = "";
        char why[VALUE_BYTES];
        sj_shipped_query_field(&questions[i], "question", 0, text, sizeof(text));
        const bool is_refused =
            sj_shipped_query_field(&questions[i], "refused", 0, why, sizeof(why));
        const bool needs_calls =
            sj_shipped_query_field(&questions[i], "needs", 0, why, sizeof(why));
        printf("%-20s %s%s\n", questions[i].name, text,
               is_refused    ? " (not for a cluster)"
               : needs_calls ? " (of calls that were given)"
                             : "");
    }
}
