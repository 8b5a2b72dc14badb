/* What `sojourn sql` does with one statement, on the command line and in the shell: parameters,
 * limits, Ctrl-C, output, time taken. */
#ifndef SJ_COLLECTOR_SERVER_CLI_STATEMENT_RUNNER_H
#define SJ_COLLECTOR_SERVER_CLI_STATEMENT_RUNNER_H

#include "collector-server/cli/query_command.h"
#include "collector-server/query/shipped_queries.h"
#include "collector-server/query/sql_guard.h"

enum { SJ_STATEMENT_RUNNER_PARAMETERS = 32 };

typedef struct sj_statement_runner {
    const sj_command *command; /* named in messages; borrowed */
    sqlite3 *database;         /* borrowed */
    sj_sql_guard *guard;
    const sj_query_options *options;                        /* format, width; borrowed */
    const char *parameters[SJ_STATEMENT_RUNNER_PARAMETERS]; /* NAME=VALUE; borrowed */
    size_t parameter_count;
    bool timing;                   /* print how long each statement took */
    bool progress;                 /* show on a terminal that a statement is running */
    bool pages;                    /* results go through a pager */
    sj_terminal terminal;          /* of the statement */
    const sj_shipped_query *query; /* whose defaults hold; NULL: none */
    int64_t started_ns;            /* of the statement, CLOCK_MONOTONIC */
    int64_t shown_tenths;          /* of a second, shown last; 0: none */
} sj_statement_runner;

/* sj_statement_runner_init puts the guard on the database and makes SIGINT interrupt statements.
 * Returns an exit code, after a message when it is not SJ_EXIT_OK. */
int sj_statement_runner_init(sj_statement_runner *runner, const sj_command *command,
                             sqlite3 *database, const sj_query_options *options,
                             const sj_sql_limits *limits);
void sj_statement_runner_deinit(sj_statement_runner *runner);

/* sj_statement_runner_run runs one statement and prints its result. Parameters are bound by name;
 * one that is nowhere given is an error. Returns an exit code, after a message when it is not
 * SJ_EXIT_OK. */
int sj_statement_runner_run(sj_statement_runner *runner, const char *sql);

/* sj_statement_runner_run_query runs a shipped query by name: SJ_EXIT_NOT_FOUND when there is none,
 * SJ_EXIT_USAGE when it has none of the runner's parameters from `first` on. */
int sj_statement_runner_run_query(sj_statement_runner *runner, const char *name, size_t first);

/* sj_statement_runner_check_parameters: SJ_EXIT_USAGE, after a message, when one of NAME=VALUE is
 * of a name that is no parameter of the query. */
int sj_statement_runner_check_parameters(const sj_command *command, const sj_shipped_query *query,
                                         const char *const *given, size_t count);

/* sj_statement_runner_list_queries prints names and titles; sj_statement_runner_describe_query all
 * that its text says of itself, or SJ_EXIT_NOT_FOUND. */
void sj_statement_runner_list_queries(void);
int sj_statement_runner_describe_query(const sj_command *command, const char *name);

/* sj_statement_runner_print_schema prints the description of the schema, or only of one table: then
 * SJ_EXIT_NOT_FOUND when it does not mention it. */
int sj_statement_runner_print_schema(const sj_command *command, const char *table);

#endif
