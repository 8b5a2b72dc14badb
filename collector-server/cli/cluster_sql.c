#include "collector-server/cli/cluster_sql.h"

#include "collector-server/forward/clickhouse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_BYTES = 512, UUID_DIGITS = 32 };

static const char *given_value(const sj_cluster_sql *sql, const char *name)
{
    const size_t length = strlen(name);
    for (size_t i = sql->parameter_count; i-- > 0;) {
        if (strncmp(sql->parameters[i], name, length) == 0 && sql->parameters[i][length] == '=') {
            return sql->parameters[i] + length + 1;
        }
    }
    return NULL;
}

/* choose_session finds the one session that `text` begins, or the newest for `last`. */
static sj_status choose_session(sj_cluster_sql *sql, const char *text, char *session,
                                sj_error *error)
{
    char statement[256];
    char *answer = NULL;
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
        sj_clickhouse_ask(sql->target, statement, "", sql->limits.time_ms, &answer, &size, error));
    sj_status status = SJ_OK;
    if (size < UUID_DIGITS) {
        status = sj_fail(error, SJ_ENOTFOUND, "there is no session %s in the cluster", text);
    } else if (size > UUID_DIGITS + 1) {
        status = sj_fail(error, SJ_EINVAL, "several sessions begin with %s", text);
    } else {
        snprintf(session, VALUE_BYTES, "%.32s", answer);
    }
    free(answer);
    return status;
}

/* is_pattern: a question says LIKE where the lab's says GLOB, of which people write the pattern. */
static bool is_pattern(const sj_shipped_query *question, const char *name)
{
    char like[VALUE_BYTES];
    const int length = snprintf(like, sizeof(like), "LIKE :%s", name);
    const char *at = length < (int)sizeof(like) ? strstr(question->text, like) : NULL;
    return at != NULL && strchr("abcdefghijklmnopqrstuvwxyz_", at[length]) == NULL;
}

/* find_value is asked while the statement is filled; when that fails, `held` stays empty. */
static const char *find_value(void *context, const char *name)
{
    sj_cluster_sql *sql = context;
    char *value = sql->held[0];
    const char *text = given_value(sql, name);
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

static sj_status fill(sj_cluster_sql *sql, const char *text, char **filled, sj_error *error)
{
    if (strstr(text, ":session") != NULL) {
        const char *session = given_value(sql, "session");
        session = session != NULL ? session : sql->options->session;
        SJ_TRY(choose_session(sql, session != NULL ? session : "last", sql->held[1], error));
    }
    return sj_cluster_fill(text, find_value, sql, filled, error);
}

static sj_status ask(sj_cluster_sql *sql, const char *text, sqlite3 **answer, bool *is_cut,
                     sj_error *error)
{
    char *filled = NULL;
    SJ_TRY(sj_forward_clickhouse.check(sql->target, error));
    SJ_TRY(fill(sql, text, &filled, error));
    const sj_status status =
        sj_cluster_ask(sql->target, filled, &sql->limits, answer, is_cut, error);
    free(filled);
    return status;
}

static int print_answer(sj_cluster_sql *sql, sqlite3 *answer, bool is_cut)
{
    sqlite3_stmt *rows = NULL;
    char line[512];
    sj_error error = {0};
    if (sqlite3_prepare_v2(answer, "SELECT * FROM answer", -1, &rows, NULL) != SQLITE_OK) {
        return sj_command_error(sql->command, SJ_EXIT_FAILED, "%s", sqlite3_errmsg(answer));
    }
    const int code = sj_query_print(sql->command, sql->options, rows);
    if (is_cut) {
        fprintf(stderr, "sojourn %s: cut (--limit)\n", sql->command->name);
    }
    if (sj_clickhouse_explain(sql->target, line, sizeof(line), &error) == SJ_OK) {
        fprintf(stderr, "sojourn %s: %s\n", sql->command->name, line);
    }
    return code;
}

int sj_cluster_sql_run(sj_cluster_sql *sql, const char *statement, const char *question)
{
    sj_error error = {0};
    sqlite3 *answer = NULL;
    bool is_cut = false;
    sql->question = question != NULL ? sj_cluster_question_find(question) : NULL;
    if (question != NULL && sql->question == NULL) {
        return sj_command_error(sql->command, SJ_EXIT_NOT_FOUND,
                                "there is no query '%s' for a cluster; --cluster URL --queries "
                                "lists them",
                                question);
    }
    sj_status status = sj_forward_clickhouse.open(&sql->cluster, &sql->target, &error);
    if (status == SJ_OK) {
        status =
            ask(sql, question != NULL ? sql->question->text : statement, &answer, &is_cut, &error);
    }
    const int code = status == SJ_OK ? print_answer(sql, answer, is_cut)
                                     : sj_command_failed(sql->command, &error);
    sqlite3_close(answer);
    sj_forward_clickhouse.close(sql->target);
    return code;
}

void sj_cluster_sql_list(void)
{
    size_t count = 0;
    const sj_shipped_query *questions = sj_cluster_questions(&count);
    for (size_t i = 0; i < count; ++i) {
        char text[VALUE_BYTES] = "";
        sj_shipped_query_field(&questions[i], "question", 0, text, sizeof(text));
        printf("%-20s %s\n", questions[i].name, text);
    }
}
