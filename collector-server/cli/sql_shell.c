/* Design notes. The shell uses the readline interface of libedit. Its callbacks have no context
 * pointer, so the completion reads static variables, and a process can have one shell only. */
#include "collector-server/cli/sql_shell.h"

#include "agent/host/directories.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/sql_completion.h"
#include "schema/queries/cli/sql_shell.h"

#include <editline/readline.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HISTORY_LINES = 2000, MAX_ARGUMENTS = 16 };

static sqlite3 *completed_database; /* for the completion callbacks */
static bool completes_quoted;

typedef struct sql_shell {
    sj_statement_runner *runner;
    sj_query_options *options;
    bool terminal;
    bool done;
    int exit_code;
    char history[PATH_MAX];
} sql_shell;

/* Callback of rl_completion_matches. Returns the next completion, NULL at the end. `state` is 0 in
 * the first call for a text. */
static char *next_word(const char *text, int state)
{
    static sj_word_list list;
    static size_t at;
    if (state == 0) {
        sj_word_list_deinit(&list);
        sj_sql_complete(completed_database, text, completes_quoted, &list);
        at = 0;
    }
    return at < list.count ? strdup(list.words[at++]) : NULL;
}

/* Callback of readline: returns the completions of the word `text` at `start`. */
static char **complete_line(const char *text, int start, int end)
{
    (void)end;
    int quotes = 0;
    for (int i = 0; i < start; ++i) {
        quotes += rl_line_buffer[i] == '\'';
    }
    completes_quoted = quotes % 2 != 0;
    rl_attempted_completion_over = 1; /* prevents completion of file names */
    return rl_completion_matches(text, next_word);
}

static void start_editing(sql_shell *shell)
{
    sj_error error = {0};
    char folder[PATH_MAX];
    completed_database = shell->runner->database;
    rl_readline_name = "sojourn";
    rl_attempted_completion_function = complete_line;
    using_history();
    /* A zero byte must do nothing. A Ctrl-D typed while a statement runs is read as a zero byte. By
     * default, libedit would then insert the next key literally, even a Ctrl-D. */
    rl_bind_key('\0', rl_insert);
    stifle_history(HISTORY_LINES);
    if (sj_state_directory("sql", folder, sizeof(folder), &error) == SJ_OK &&
        snprintf(shell->history, sizeof(shell->history), "%s/history", folder) <
            (int)sizeof(shell->history)) {
        read_history(shell->history);
    } else {
        shell->history[0] = '\0';
    }
}

/* Returns the next line without its newline, NULL at the end of the input. The caller frees the
 * line. `continued` selects the prompt for later lines of a statement. */
static char *read_line(const sql_shell *shell, bool continued)
{
    if (shell->terminal) {
        /* Before the prompt, so that a Ctrl-D typed as soon as the prompt appears is read right. */
        rl_prep_terminal(1);
        return readline(continued ? "    ...> " : "sojourn> ");
    }
    char *line = NULL;
    size_t capacity = 0;
    const ssize_t length = getline(&line, &capacity, stdin);
    if (length < 0) {
        free(line);
        return NULL;
    }
    line[strcspn(line, "\r\n")] = '\0';
    return line;
}

static int print_help(void)
{
    puts("Statements end with a semicolon. Dot commands:\n"
         "  .tables             tables, views and table functions\n"
         "  .schema [TABLE]     columns and units\n"
         "  .queries            queries that Sojourn ships\n"
         "  .query NAME [P=V]   run one; without a database parameter its default holds\n"
         "  .show NAME          the text of one\n"
         "  .mode FORMAT        table, csv, json, markdown\n"
         "  .wide on|off        do not cut long values\n"
         "  .timer on|off       show how long each statement took\n"
         "  .session ID         session that :session means\n"
         "  .help, .quit");
    return SJ_EXIT_OK;
}

static int set_mode(sql_shell *shell, const char *word)
{
    static const char *const names[] = {"table", "csv", "json", "markdown"};
    for (int i = 0; i < 4; ++i) {
        if (word != NULL && strcmp(word, names[i]) == 0) {
            shell->options->format = (sj_result_format)i;
            return SJ_EXIT_OK;
        }
    }
    return sj_command_error(shell->runner->command, SJ_EXIT_USAGE,
                            ".mode takes table, csv, json or markdown");
}

static int run_shipped_query(sql_shell *shell, char **words, size_t count)
{
    sj_statement_runner *runner = shell->runner;
    const size_t former_count = runner->parameter_count;
    for (size_t i = 2; i < count && runner->parameter_count < SJ_STATEMENT_RUNNER_PARAMETERS; ++i) {
        runner->parameters[runner->parameter_count++] = words[i];
    }
    const int exit_code = sj_statement_runner_run_query(runner, words[1], former_count);
    runner->parameter_count = former_count;
    return exit_code;
}

static int print_tables(sql_shell *shell)
{
    return sj_statement_runner_run(shell->runner, sj_sql_shell_tables_sql);
}

static int run_dot_command(sql_shell *shell, char *line)
{
    char *words[MAX_ARGUMENTS + 1] = {0};
    size_t count = 0;
    char *remaining_line = line;
    for (char *word; count < MAX_ARGUMENTS && (word = strsep(&remaining_line, " \t")) != NULL;) {
        if (word[0] != '\0') {
            words[count++] = word;
        }
    }
    const char *argument = words[1];
    if (strcmp(words[0], ".quit") == 0 || strcmp(words[0], ".exit") == 0) {
        shell->done = true;
        return shell->exit_code;
    }
    if (strcmp(words[0], ".tables") == 0) {
        return print_tables(shell);
    }
    if (strcmp(words[0], ".schema") == 0) {
        return sj_statement_runner_print_schema(shell->runner->command, argument);
    }
    if (strcmp(words[0], ".mode") == 0) {
        return set_mode(shell, argument);
    }
    if (strcmp(words[0], ".queries") == 0) {
        sj_statement_runner_list_queries();
        return SJ_EXIT_OK;
    }
    if (strcmp(words[0], ".show") == 0 && argument != NULL) {
        return sj_statement_runner_describe_query(shell->runner->command, argument);
    }
    if (strcmp(words[0], ".query") == 0 && argument != NULL) {
        return run_shipped_query(shell, words, count);
    }
    if (strcmp(words[0], ".wide") == 0 || strcmp(words[0], ".timer") == 0) {
        const bool on = argument == NULL || strcmp(argument, "on") == 0;
        *(words[0][1] == 'w' ? &shell->options->wide : &shell->runner->timing) = on;
        return SJ_EXIT_OK;
    }
    if (strcmp(words[0], ".session") == 0 && argument != NULL) {
        free((char *)(uintptr_t)shell->options->session);
        shell->options->session = strdup(argument);
        return SJ_EXIT_OK;
    }
    if (strcmp(words[0], ".help") == 0) {
        return print_help();
    }
    return sj_command_error(shell->runner->command, SJ_EXIT_USAGE,
                            "cannot understand %s; .help helps", words[0]);
}

static void remember_statement(sql_shell *shell, const char *statement)
{
    if (shell->terminal) {
        add_history(statement);
        if (shell->history[0] != '\0') {
            write_history(shell->history);
        }
    }
}

/* Reads lines up to the end of a statement, or one dot command. Returns NULL at the end of the
 * input. The caller frees the text. */
static char *read_statement(sql_shell *shell)
{
    char *statement = NULL;
    char *line;
    while ((line = read_line(shell, statement != NULL)) != NULL) {
        char *joined = NULL;
        if (statement == NULL && (line[0] == '.' || line[strspn(line, " \t")] == '\0')) {
            return line;
        }
        if (asprintf(&joined, "%s%s%s", statement != NULL ? statement : "",
                     statement != NULL ? "\n" : "", line) < 0) {
            joined = NULL;
        }
        free(statement);
        free(line);
        statement = joined;
        if (statement == NULL || sqlite3_complete(statement)) {
            return statement;
        }
    }
    return statement;
}

/* Returns the length of the first statement of a text, including its semicolon. */
static size_t first_statement_bytes(const char *text)
{
    size_t size = 0;
    while (text[size] != '\0') {
        size += strcspn(text + size, ";");
        size += text[size] == ';';
        char *begin = strndup(text, size);
        const bool whole = begin == NULL || sqlite3_complete(begin);
        free(begin);
        if (whole) {
            break;
        }
    }
    return size;
}

/* True if the text is only comments and white space. */
static bool is_comment(sqlite3 *database, const char *text)
{
    sqlite3_stmt *statement = NULL;
    const int result = sqlite3_prepare_v2(database, text, -1, &statement, NULL);
    const bool is_empty = result == SQLITE_OK && statement == NULL;
    sqlite3_finalize(statement);
    return is_empty;
}

/* Runs the statements of a text in order, up to the first that fails. */
static int run_statements(sj_statement_runner *runner, const char *text)
{
    int exit_code = SJ_EXIT_OK;
    while (exit_code == SJ_EXIT_OK && text[strspn(text, " \t\n;")] != '\0') {
        char *statement = strndup(text, first_statement_bytes(text));
        if (statement == NULL) {
            return sj_command_error(runner->command, SJ_EXIT_FAILED, "out of memory");
        }
        text += strlen(statement);
        exit_code = is_comment(runner->database, statement)
                        ? SJ_EXIT_OK
                        : sj_statement_runner_run(runner, statement);
        free(statement);
    }
    return exit_code;
}

int sj_sql_shell(sj_statement_runner *runner, sj_query_options *options)
{
    sql_shell shell = {.runner = runner, .options = options};
    shell.terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    options->session = strdup(options->session != NULL ? options->session : "last");
    runner->progress = shell.terminal;
    if (shell.terminal) {
        start_editing(&shell);
        puts("SQL ends with a semicolon; .help helps, .queries lists questions, Tab completes.");
    }
    char *statement;
    while (!shell.done && (statement = read_statement(&shell)) != NULL) {
        if (statement[strspn(statement, " \t")] != '\0') {
            remember_statement(&shell, statement);
            shell.exit_code = statement[0] == '.' ? run_dot_command(&shell, statement)
                                                  : run_statements(runner, statement);
            /* The first error ends a script. */
            shell.done |= !shell.terminal && shell.exit_code != SJ_EXIT_OK;
            fflush(stdout);
        }
        free(statement);
    }
    if (shell.terminal && !shell.done) {
        putchar('\n');
    }
    free((char *)(uintptr_t)options->session);
    options->session = NULL;
    return shell.terminal ? SJ_EXIT_OK : shell.exit_code;
}
