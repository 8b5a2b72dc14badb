#include "collector-server/cli/asker.h"

#include "collector-server/cli/commands.h"
#include "collector-server/cli/database_choice.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { VALUE_BYTES = 256, PROGRESS_AFTER_TENTHS = 10, TENTH_NS = 100000000 };

static volatile sig_atomic_t interrupted; /* set by SIGINT, cleared before each statement */

static void note_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool watch(void *held)
{
    sj_asker *asker = held;
    const int64_t tenths = (now_ns() - asker->started_ns) / TENTH_NS;
    if (asker->progress && tenths > PROGRESS_AFTER_TENTHS && tenths != asker->told_tenths) {
        fprintf(stderr, "\r... %.1f s (Ctrl-C stops)", (double)tenths / 10);
        asker->told_tenths = tenths;
    }
    return interrupted == 0;
}

static const char *given_value(const sj_asker *asker, const char *name)
{
    const size_t length = strlen(name);
    for (size_t i = asker->parameter_count; i-- > 0;) {
        if (strncmp(asker->parameters[i], name, length) == 0 &&
            asker->parameters[i][length] == '=') {
            return asker->parameters[i] + length + 1;
        }
    }
    return NULL;
}

/* Numbers are bound as numbers, everything else as text. */
static void bind_value(sqlite3_stmt *statement, int number, const char *value)
{
    char *end;
    const long long integer = strtoll(value, &end, 10);
    if (end != value && *end == '\0') {
        sqlite3_bind_int64(statement, number, integer);
        return;
    }
    const double real = strtod(value, &end);
    if (end != value && *end == '\0') {
        sqlite3_bind_double(statement, number, real);
        return;
    }
    sqlite3_bind_text(statement, number, value, -1, SQLITE_TRANSIENT);
}

static sj_status bind_parameters(void *held, sqlite3_stmt *statement, sj_error *error)
{
    const sj_asker *asker = held;
    for (int i = 1; i <= sqlite3_bind_parameter_count(statement); ++i) {
        char value[VALUE_BYTES];
        const char *name = sqlite3_bind_parameter_name(statement, i);
        const char *text = name != NULL ? given_value(asker, name + 1) : NULL;
        if (text == NULL && name != NULL && asker->query != NULL &&
            sj_shipped_query_default(asker->query, name + 1, value, sizeof(value))) {
            text = value;
        }
        if (name != NULL && strcmp(name + 1, "session") == 0) {
            int64_t session_id;
            text = text != NULL ? text : asker->options->session;
            if (text == value && asker->options->session != NULL) {
                text = asker->options->session;
            }
            SJ_TRY(sj_session_choose(asker->database, text, &session_id, error));
            sqlite3_bind_int64(statement, i, session_id);
        } else if (text == NULL) {
            return sj_fail(error, SJ_EINVAL,
                           "the query has the parameter %s: give --param %s=VALUE",
                           name != NULL ? name : "?", name != NULL ? name + 1 : "NAME");
        } else {
            bind_value(statement, i, text);
        }
    }
    return SJ_OK;
}

int sj_asker_init(sj_asker *asker, sqlite3 *database, const sj_query_options *options,
                  const sj_sql_limits *limits)
{
    sj_error error = {0};
    struct sigaction action = {.sa_handler = note_interrupt};
    asker->database = database;
    asker->options = options;
    if (sj_sql_guard_new(database, limits, &asker->guard, &error) != SJ_OK) {
        return sj_command_error(&sj_command_sql, SJ_EXIT_FAILED, "%s", error.text);
    }
    sj_sql_guard_set_prepared(asker->guard, bind_parameters, asker);
    sj_sql_guard_set_watch(asker->guard, watch, asker);
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    return SJ_EXIT_OK;
}

void sj_asker_deinit(sj_asker *asker)
{
    sj_sql_guard_free(asker->guard);
    signal(SIGINT, SIG_DFL);
}

int sj_asker_run(sj_asker *asker, const char *sql)
{
    sj_error error = {0};
    sj_sql_outcome outcome;
    sj_result_writer writer;
    sj_result_writer_init(&writer, stdout, asker->options->format);
    writer.wide = asker->options->wide;
    interrupted = 0;
    asker->told_tenths = 0;
    asker->started_ns = now_ns();
    const sj_status status =
        sj_sql_guard_run(asker->guard, sql, sj_result_writer_row, &writer, &outcome, &error);
    if (asker->told_tenths != 0) {
        fprintf(stderr, "\r\033[K");
    }
    const bool written = sj_result_writer_end(&writer);
    sj_query_print_warnings(&sj_command_sql, asker->database);
    if (status != SJ_OK) {
        return sj_command_error(&sj_command_sql,
                                status == SJ_ENOTFOUND ? SJ_EXIT_NOT_FOUND : SJ_EXIT_FAILED, "%s",
                                error.text);
    }
    if (!written) {
        return sj_command_error(&sj_command_sql, SJ_EXIT_FAILED, "cannot write the result");
    }
    if (outcome.truncated) {
        fprintf(stderr, "sojourn sql: cut after %lld rows (--limit)\n", (long long)outcome.rows);
    }
    if (asker->timing) {
        fprintf(stderr, "%lld rows in %.3f s\n", (long long)outcome.rows,
                (double)(now_ns() - asker->started_ns) / 1e9);
    }
    return SJ_EXIT_OK;
}

int sj_asker_run_query(sj_asker *asker, const char *name)
{
    asker->query = sj_shipped_query_find(name);
    if (asker->query == NULL) {
        return sj_command_error(&sj_command_sql, SJ_EXIT_NOT_FOUND,
                                "there is no query '%s'; --queries lists them", name);
    }
    const int exit_code = sj_asker_run(asker, asker->query->text);
    asker->query = NULL;
    return exit_code;
}

void sj_asker_list_queries(void)
{
    size_t count;
    const sj_shipped_query *queries = sj_shipped_queries(&count);
    for (size_t i = 0; i < count; ++i) {
        char question[VALUE_BYTES] = "";
        sj_shipped_query_field(&queries[i], "question", 0, question, sizeof(question));
        printf("%-20s %s\n", queries[i].name, question);
    }
}

int sj_asker_describe_query(const char *name)
{
    const sj_shipped_query *query = sj_shipped_query_find(name);
    if (query == NULL) {
        return sj_command_error(&sj_command_sql, SJ_EXIT_NOT_FOUND,
                                "there is no query '%s'; --queries lists them", name);
    }
    fputs(query->text, stdout);
    return SJ_EXIT_OK;
}

int sj_asker_print_schema(const char *table)
{
    const char *text = sj_schema_text();
    if (table == NULL) {
        fputs(text, stdout);
        return SJ_EXIT_OK;
    }
    char heading[VALUE_BYTES];
    snprintf(heading, sizeof(heading), "\n## %s\n", table);
    const char *found = strstr(text, heading);
    if (found == NULL) {
        return sj_command_error(&sj_command_sql, SJ_EXIT_NOT_FOUND,
                                "the schema tells of no table '%s'; --schema shows all", table);
    }
    const char *end = strstr(found + 1, "\n## ");
    printf("%.*s", (int)(end != NULL ? (size_t)(end - found - 1) : strlen(found + 1)), found + 1);
    return SJ_EXIT_OK;
}
