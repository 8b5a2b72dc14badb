/* Functions and options for commands that query a database. */
#ifndef SJ_COLLECTOR_SERVER_CLI_QUERY_COMMAND_H
#define SJ_COLLECTOR_SERVER_CLI_QUERY_COMMAND_H

#include "collector-server/cli/cluster_options.h"
#include "collector-server/cli/command.h"
#include "collector-server/cli/output_file.h"
#include "collector-server/cli/result_writer.h"
#include "collector-server/cli/terminal.h"
#include "collector-server/store/sql.h"

#include <sqlite3.h>
#include <stdint.h>

typedef struct sj_query_options {
    const char *file;
    const char *session;
    sj_result_format format;
    bool wide;
    sj_forward_options cluster; /* the cluster to query instead of a file; url is NULL if none */
    /* Set by the command: */
    const char *const *hidden_first; /* see sj_result_writer */
    sj_terminal *terminal; /* an open terminal, perhaps with a pager; NULL: not open yet */
    /* the sets of sessions to read from the cluster; both NULL: read `session` */
    const char *cluster_sets[2];
} sj_query_options;

/* Rows of a table of options. `place` is the offset of a `const char *` in the structure, `base` of
 * an sj_query_options. */
/* clang-format off */
#define SJ_DATABASE_OPTION(place) \
    {.name = "database", .letter = 'd', .argument = "FILE", .kind = SJ_ARG_TEXT, \
     .offset = (place), \
     .help = "the database; else $SOJOURN_DATABASE, else the newest sojourn-*.db here"}
#define SJ_QUERY_SESSION_OPTION(base) \
    {.name = "session", .argument = "ID", .kind = SJ_ARG_TEXT, \
     .offset = (base) + offsetof(sj_query_options, session), \
     .help = "a session_id, the beginning of a uuid, or `last` (default)"}
#define SJ_QUERY_CLUSTER_OPTIONS(base) \
    {.name = "cluster", .argument = "URL", .kind = SJ_ARG_TEXT, \
     .offset = (base) + offsetof(sj_query_options, cluster.url), \
     .help = "ask a ClickHouse cluster of many labs, instead of FILE"}, \
    SJ_CLUSTER_OPTIONS((base) + offsetof(sj_query_options, cluster)),                              \
        SJ_CLUSTER_LIST_OPTION((base) + offsetof(sj_query_options, cluster))
#define SJ_QUERY_FORMAT_OPTIONS(base) \
    {.name = "wide", .kind = SJ_ARG_FLAG, .offset = (base) + offsetof(sj_query_options, wide), \
     .help = "do not cut long values"}, \
    {.name = "json", .kind = SJ_ARG_CHOICE, .least = SJ_RESULT_JSON, \
     .offset = (base) + offsetof(sj_query_options, format), \
     .help = "as JSON, with times in nanoseconds"}, \
    {.name = "csv", .kind = SJ_ARG_CHOICE, .least = SJ_RESULT_CSV, \
     .offset = (base) + offsetof(sj_query_options, format), .help = "as CSV, likewise"}, \
    {.name = "markdown", .kind = SJ_ARG_CHOICE, .least = SJ_RESULT_MARKDOWN, \
     .offset = (base) + offsetof(sj_query_options, format), .help = "as a table in Markdown"}
/* clang-format on */

/* Stores the optional last argument FILE, argv[first], in `*file`. Without that argument, `*file`
 * stays as --database has set it; NULL if it was not given. Returns -1 if the command should
 * continue. Else returns an exit code after a message: for further arguments, and for FILE together
 * with --database. */
int sj_query_parse_file(const sj_command *command, int argc, char **argv, int first,
                        const char **file);

/* Opens the database, or a copy of the queried part of a cluster. For a cluster, prints on standard
 * error which engine ran the queries. If `session_id` is not NULL, finds the session and prints
 * warnings about its data on standard error. Returns an exit code, after a message if it is not
 * SJ_EXIT_OK. */
int sj_query_open(const sj_command *command, const sj_query_options *options, sqlite3 **database,
                  int64_t *session_id);

/* True if the format is JSON or CSV, which programs read. Then times are in nanoseconds and ids are
 * not shortened. */
static inline bool sj_query_wants_data(const sj_query_options *options)
{
    return options->format == SJ_RESULT_JSON || options->format == SJ_RESULT_CSV;
}

/* Runs a prepared query, prints its rows and finalizes it. If the rows are a table and standard
 * output is a terminal, uses a pager. Closes the terminal. Returns an exit code, after a message if
 * it is not SJ_EXIT_OK. */
int sj_query_print(const sj_command *command, const sj_query_options *options,
                   sqlite3_stmt *statement);

/* Runs a statement and calls `read_row` for each row, as sj_sql_each does. Returns SJ_EXIT_OK, or
 * SJ_EXIT_FAILED after a message. */
int sj_query_each(const sj_command *command, sqlite3 *database, const char *sql, sj_sql_binds binds,
                  sj_sql_row_reader *read_row, void *context);

/* Prints a warning on standard error if some calls of the session are stored only as totals
 * (profiles; copies of a cluster's sums). Queries of single calls or of a time window do not
 * include these calls. */
void sj_query_warn_of_totals(const sj_command *command, sqlite3 *database, int64_t session_id);

/* Opens a file for a result of `database` like sj_output_file_open, with the same return values.
 * Fails if the file is the database itself. The caller closes the file with
 * sj_output_file_close. */
int sj_query_output_open(const sj_command *command, sqlite3 *database, const char *path,
                         sj_output_file *output);

/* Prints on standard error which unreadable blocks the query left out. */
void sj_query_print_warnings(const sj_command *command, sqlite3 *database);

#endif
