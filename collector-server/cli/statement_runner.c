#include "collector-server/cli/statement_runner.h"

#include "agent/host/clock.h"
#include "collector-server/cli/database_choice.h"
#include "collector-server/cli/work_progress.h"
#include "proto/base/units.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VALUE_BYTES = 256, PROGRESS_AFTER_TENTHS = 10, TENTH_NS = 100000000 };

static volatile sig_atomic_t interrupted; /* set by SIGINT, cleared before each statement */

static void note_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

/* sj_progress_watch passes no context to note_progress. */
static sj_statement_runner *shown_runner; /* the runner whose progress is shown */
static sj_progress latest_progress;       /* the latest progress of `shown_runner` */

/* Shows that the statement is running, at most every tenth of a second and not during a pager. */
static void show_time(sj_statement_runner *runner)
{
    const int64_t tenths = ((int64_t)sj_clock_ns(CLOCK_MONOTONIC) - runner->started_ns) / TENTH_NS;
    if (runner->progress && runner->terminal.pager == 0 && tenths > PROGRESS_AFTER_TENTHS &&
        tenths != runner->shown_tenths) {
        char text[SJ_PROGRESS_TEXT_BYTES];
        fprintf(stderr, "\r\033[K... %s (Ctrl-C stops)",
                sj_work_progress_text(tenths * TENTH_NS, &latest_progress, text));
        runner->shown_tenths = tenths;
    }
}

static void note_progress(const sj_progress *progress)
{
    latest_progress = *progress;
    show_time(shown_runner);
}

/* Callback of the guard while a statement runs: shows the time. False: stop the statement. */
static bool is_not_interrupted(void *held)
{
    show_time(held);
    return interrupted == 0;
}

static const char *find_given_value(const sj_statement_runner *runner, const char *name)
{
    const size_t length = strlen(name);
    for (size_t i = runner->parameter_count; i-- > 0;) {
        if (strncmp(runner->parameters[i], name, length) == 0 &&
            runner->parameters[i][length] == '=') {
            return runner->parameters[i] + length + 1;
        }
    }
    return NULL;
}

/* Binds a value that is a number as a number, any other value as text. */
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

/* Binds each parameter of a statement: to the given value, else to the default of the shipped
 * query. For :session, --session precedes the default. */
static sj_status bind_parameters(void *held, sqlite3_stmt *statement, sj_error *error)
{
    const sj_statement_runner *runner = held;
    for (int i = 1; i <= sqlite3_bind_parameter_count(statement); ++i) {
        char value[VALUE_BYTES];
        const char *name = sqlite3_bind_parameter_name(statement, i);
        const char *text = name != NULL ? find_given_value(runner, name + 1) : NULL;
        if (text == NULL && name != NULL && runner->query != NULL &&
            sj_shipped_query_default(runner->query, name + 1, value, sizeof(value))) {
            text = value;
        }
        if (name != NULL && strcmp(name + 1, "session") == 0) {
            int64_t session_id;
            text = text != NULL ? text : runner->options->session;
            if (text == value && runner->options->session != NULL) {
                text = runner->options->session;
            }
            SJ_TRY(sj_session_choose(runner->database, text, &session_id, error));
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

int sj_statement_runner_init(sj_statement_runner *runner, const sj_command *command,
                             sqlite3 *database, const sj_query_options *options,
                             const sj_sql_limits *limits)
{
    sj_error error = {0};
    struct sigaction action = {.sa_handler = note_interrupt};
    runner->command = command;
    runner->database = database;
    runner->options = options;
    if (sj_sql_guard_new(database, limits, &runner->guard, &error) != SJ_OK) {
        return sj_command_failed(runner->command, &error);
    }
    sj_sql_guard_set_prepared(runner->guard, bind_parameters, runner);
    sj_sql_guard_set_watch(runner->guard, is_not_interrupted, runner);
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    return SJ_EXIT_OK;
}

void sj_statement_runner_deinit(sj_statement_runner *runner)
{
    sj_sql_guard_free(runner->guard);
    signal(SIGINT, SIG_DFL);
}

int sj_statement_runner_run(sj_statement_runner *runner, const char *sql)
{
    sj_error error = {0};
    sj_sql_outcome outcome;
    sj_result_writer writer;
    sj_result_writer_init(&writer, stdout, runner->options->format);
    writer.wide = runner->options->wide;
    sj_terminal_open(&runner->terminal);
    writer.terminal = runner->pages ? &runner->terminal : NULL;
    interrupted = 0;
    shown_runner = runner;
    latest_progress = (sj_progress){.part = -1};
    runner->shown_tenths = 0;
    runner->started_ns = (int64_t)sj_clock_ns(CLOCK_MONOTONIC);
    sj_progress_watch(runner->progress ? note_progress : NULL);
    const sj_status status =
        sj_sql_guard_run(runner->guard, sql, sj_result_writer_row, &writer, &outcome, &error);
    sj_progress_watch(NULL);
    if (runner->shown_tenths != 0) {
        fprintf(stderr, "\r\033[K");
    }
    const bool ended = sj_result_writer_end(&writer);
    const bool written = sj_terminal_close(&runner->terminal) && ended;
    sj_query_print_warnings(runner->command, runner->database);
    if (status != SJ_OK) {
        return sj_command_failed(runner->command, &error);
    }
    if (!written) {
        return sj_command_error(runner->command, SJ_EXIT_FAILED, "cannot write the result");
    }
    if (outcome.truncated) {
        fprintf(stderr, "sojourn sql: cut after %s (--limit)\n", SJ_COUNTED(outcome.rows, "row"));
    }
    if (runner->timing) {
        fprintf(stderr, "%s in %.3f s\n", SJ_COUNTED(outcome.rows, "row"),
                (double)((int64_t)sj_clock_ns(CLOCK_MONOTONIC) - runner->started_ns) / 1e9);
    }
    return SJ_EXIT_OK;
}

/* True if the shipped query has the parameter named before the `=` of `given`. */
static bool has_parameter(const sj_shipped_query *query, const char *given)
{
    char value[VALUE_BYTES];
    char name[VALUE_BYTES];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(given, "="), given);
    return sj_shipped_query_default(query, name, value, sizeof(value));
}

int sj_statement_runner_check_parameters(const sj_command *command, const sj_shipped_query *query,
                                         const char *const *given, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!has_parameter(query, given[i])) {
            return sj_command_error(command, SJ_EXIT_USAGE,
                                    "the query %s has no parameter for %s; --show %s lists them",
                                    query->name, given[i], query->name);
        }
    }
    return SJ_EXIT_OK;
}

int sj_statement_runner_run_query(sj_statement_runner *runner, const char *name, size_t first)
{
    runner->query = sj_shipped_query_find(name);
    if (runner->query == NULL) {
        return sj_command_error(runner->command, SJ_EXIT_NOT_FOUND,
                                "there is no query '%s'; --queries lists them", name);
    }
    int exit_code = sj_statement_runner_check_parameters(runner->command, runner->query,
                                                         runner->parameters + first,
                                                         runner->parameter_count - first);
    if (exit_code == SJ_EXIT_OK) {
        exit_code = sj_statement_runner_run(runner, runner->query->text);
    }
    runner->query = NULL;
    return exit_code;
}

void sj_statement_runner_list_queries(void)
{
    size_t count;
    const sj_shipped_query *queries = sj_shipped_queries(&count);
    for (size_t i = 0; i < count; ++i) {
        char question[VALUE_BYTES] = "";
        sj_shipped_query_field(&queries[i], "question", 0, question, sizeof(question));
        printf("%-20s %s\n", queries[i].name, question);
    }
}

int sj_statement_runner_describe_query(const sj_command *command, const char *name)
{
    const sj_shipped_query *query = sj_shipped_query_find(name);
    if (query == NULL) {
        return sj_command_error(command, SJ_EXIT_NOT_FOUND,
                                "there is no query '%s'; --queries lists them", name);
    }
    fputs(query->text, stdout);
    return SJ_EXIT_OK;
}

int sj_statement_runner_print_schema(const sj_command *command, const char *table)
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
        return sj_command_error(command, SJ_EXIT_NOT_FOUND,
                                "the schema has no table '%s'; --schema shows all", table);
    }
    const char *end = strstr(found + 1, "\n## ");
    printf("%.*s", (int)(end != NULL ? (size_t)(end - found - 1) : strlen(found + 1)), found + 1);
    return SJ_EXIT_OK;
}
