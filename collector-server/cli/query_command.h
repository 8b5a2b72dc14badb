/* What the commands that ask a database share: options, the session, one query as output. */
#ifndef SJ_COLLECTOR_SERVER_CLI_QUERY_COMMAND_H
#define SJ_COLLECTOR_SERVER_CLI_QUERY_COMMAND_H

#include "collector-server/cli/cluster_options.h"
#include "collector-server/cli/command.h"
#include "collector-server/cli/result_writer.h"
#include "collector-server/cli/terminal.h"

#include <sqlite3.h>
#include <stdint.h>

typedef struct sj_query_options {
    const char *file;
    const char *session;
    sj_result_format format;
    bool wide;
    sj_forward_options cluster; /* asked instead of a file; url NULL: none */
    /* set by the command */
    const char *const *hidden_first; /* as of sj_result_writer */
    sj_terminal *terminal;           /* opened, and perhaps paged, before; NULL: not yet */
    const char *cluster_sets[2];     /* whose sums are read of it; without any: `session` */
} sj_query_options;

/* Rows of a table of options; `base` is the offset of the sj_query_options in the structure. */
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

/* sj_query_take_file takes the FILE that may stand behind the other arguments, argv[first] on, into
 * `*file`, which --database may have set. -1: go on; else an exit code, after a message. */
int sj_query_take_file(const sj_command *command, int argc, char **argv, int first,
                       const char **file);

/* sj_query_open opens the database, or a copy of what is asked of a cluster, of which it says on
 * standard error which engine answered; and, when `session_id` is not NULL, finds the session.
 * Returns an exit code, after a message when it is not SJ_EXIT_OK. */
int sj_query_open(const sj_command *command, const sj_query_options *options, sqlite3 **database,
                  int64_t *session_id);

/* sj_query_wants_data is true if the format is read by programs: JSON or CSV. Then times are
 * nanoseconds and ids are whole; a table has them as people read them. */
static inline bool sj_query_wants_data(const sj_query_options *options)
{
    return options->format == SJ_RESULT_JSON || options->format == SJ_RESULT_CSV;
}

/* sj_query_print runs a prepared query (finalized here) and prints its rows; a table on a terminal
 * through a pager. Closes the terminal. */
int sj_query_print(const sj_command *command, const sj_query_options *options,
                   sqlite3_stmt *statement);

/* sj_query_warn_of_totals warns on standard error when calls of the session are known as totals
 * only (profiles; copies of a cluster's sums): single calls, and those of a window, are asked for,
 * and these are not among them. */
void sj_query_warn_of_totals(const sj_command *command, sqlite3 *database, int64_t session_id);

/* sj_query_output_open opens the file that an answer of `database` goes to, which is emptied; NULL,
 * and a message, when it cannot be written or is the database itself. The caller closes it. */
FILE *sj_query_output_open(const sj_command *command, sqlite3 *database, const char *path);

/* sj_query_print_warnings says on standard error which blocks were left out. */
void sj_query_print_warnings(const sj_command *command, sqlite3 *database);

#endif
