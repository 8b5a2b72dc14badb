/* Runs statements of `sojourn sql`, from the command line or from the shell. */
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
    bool timing;          /* print how long each statement took */
    bool progress;        /* show on standard error how long a statement has been running */
    bool pages;           /* show tables through a pager */
    sj_terminal terminal; /* standard output, while a statement runs */
    /* the shipped query whose default parameters are used; NULL: none */
    const sj_shipped_query *query;
    int64_t started_ns;   /* start of the current statement, CLOCK_MONOTONIC */
    int64_t shown_tenths; /* the latest shown duration, in tenths of a second; 0: none shown */
} sj_statement_runner;

/* Initializes a runner. Installs a guard with the limits on the database (sql_guard.h). Installs a
 * handler for SIGINT that interrupts the running statement. Returns an exit code, after a message
 * if it is not SJ_EXIT_OK. */
int sj_statement_runner_init(sj_statement_runner *runner, const sj_command *command,
                             sqlite3 *database, const sj_query_options *options,
                             const sj_sql_limits *limits);
void sj_statement_runner_deinit(sj_statement_runner *runner);

/* Runs one statement and prints its result. Parameters are bound by name; a parameter without a
 * value is an error. Returns an exit code, after a message if it is not SJ_EXIT_OK. */
int sj_statement_runner_run(sj_statement_runner *runner, const char *sql);

/* Runs a shipped query by name, like sj_statement_runner_run. Returns SJ_EXIT_NOT_FOUND if the
 * query does not exist. Returns SJ_EXIT_USAGE if the query does not have one of the runner's
 * parameters from `first` on. */
int sj_statement_runner_run_query(sj_statement_runner *runner, const char *name, size_t first);

/* Checks that the query has each parameter of `given` (NAME=VALUE). If not, prints a message and
 * returns SJ_EXIT_USAGE. */
int sj_statement_runner_check_parameters(const sj_command *command, const sj_shipped_query *query,
                                         const char *const *given, size_t count);

/* Prints the names of all shipped queries, each with the question that it answers. */
void sj_statement_runner_list_queries(void);

/* Prints the text of a shipped query, with its comments. Returns SJ_EXIT_NOT_FOUND, after a
 * message, if the query does not exist. */
int sj_statement_runner_describe_query(const sj_command *command, const char *name);

/* Prints the description of the schema, or only of `table` if that is not NULL. Returns
 * SJ_EXIT_NOT_FOUND, after a message, if the description has no such table. */
int sj_statement_runner_print_schema(const sj_command *command, const char *table);

#endif
