/* What `sojourn sql` does with one statement, on the command line and in the shell: parameters,
 * limits, Ctrl-C, output, time taken. */
#ifndef SJ_COLLECTOR_CLI_ASKER_H
#define SJ_COLLECTOR_CLI_ASKER_H

#include "collector-server/cli/query_command.h"
#include "collector-server/query/shipped_queries.h"
#include "collector-server/query/sql_guard.h"

enum { SJ_ASKER_PARAMETERS = 32 };

typedef struct sj_asker {
    sqlite3 *database; /* borrowed */
    sj_sql_guard *guard;
    const sj_query_options *options;             /* format, width; borrowed */
    const char *parameters[SJ_ASKER_PARAMETERS]; /* NAME=VALUE; borrowed */
    size_t parameter_count;
    bool timing;                   /* tell how long each statement took */
    bool progress;                 /* show on a terminal that a statement is running */
    const sj_shipped_query *query; /* whose defaults hold; NULL: none */
    int64_t started_ns;            /* of the statement, CLOCK_MONOTONIC */
    int64_t told_tenths;           /* of a second, shown last; 0: nothing was */
} sj_asker;

/* sj_asker_init puts the guard on the database and makes SIGINT interrupt statements. Returns an
 * exit code, after a message when it is not SJ_EXIT_OK. */
int sj_asker_init(sj_asker *asker, sqlite3 *database, const sj_query_options *options,
                  const sj_sql_limits *limits);
void sj_asker_deinit(sj_asker *asker);

/* sj_asker_run runs one statement and prints its result. Parameters are bound by name; one that is
 * nowhere given is an error. Returns an exit code, after a message when it is not SJ_EXIT_OK. */
int sj_asker_run(sj_asker *asker, const char *sql);

/* sj_asker_run_query runs a shipped query by name: SJ_EXIT_NOT_FOUND when there is none. */
int sj_asker_run_query(sj_asker *asker, const char *name);

/* sj_asker_list_queries prints names and titles; sj_asker_describe_query all that its text says of
 * itself, or SJ_EXIT_NOT_FOUND. */
void sj_asker_list_queries(void);
int sj_asker_describe_query(const char *name);

/* sj_asker_print_schema prints the description of the schema, or only of one table: then
 * SJ_EXIT_NOT_FOUND when it tells nothing of it. */
int sj_asker_print_schema(const char *table);

#endif
