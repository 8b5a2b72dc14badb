/* What the commands that ask a database share: options, the session, one query as output. */
#ifndef SJ_COLLECTOR_CLI_QUERY_COMMAND_H
#define SJ_COLLECTOR_CLI_QUERY_COMMAND_H

#include "collector-server/cli/command.h"
#include "collector-server/cli/result_writer.h"

#include <sqlite3.h>
#include <stdint.h>

typedef struct sj_query_options {
    const char *file;
    const char *session;
    sj_result_format format;
    bool wide;
} sj_query_options;

/* sj_query_common_option takes --json --csv --markdown --session and --wide (numbered from
 * SJ_OPTION_JSON on in the command's table); false when it is none of them. */
enum {
    SJ_OPTION_JSON = 1000,
    SJ_OPTION_CSV,
    SJ_OPTION_MARKDOWN,
    SJ_OPTION_SESSION,
    SJ_OPTION_WIDE
};
bool sj_query_common_option(sj_query_options *options, int option, const char *value);

/* The rows of a getopt_long table for them. */
#define SJ_QUERY_OPTIONS                                                                           \
    {"json", no_argument, NULL, SJ_OPTION_JSON}, {"csv", no_argument, NULL, SJ_OPTION_CSV},        \
        {"markdown", no_argument, NULL, SJ_OPTION_MARKDOWN},                                       \
        {"session", required_argument, NULL, SJ_OPTION_SESSION},                                   \
    {                                                                                              \
        "wide", no_argument, NULL, SJ_OPTION_WIDE                                                  \
    }

/* sj_query_open opens the database and, when `session_id` is not NULL, finds the session. Returns
 * an exit code, after a message when it is not SJ_EXIT_OK. */
int sj_query_open(const sj_command *command, const sj_query_options *options, sqlite3 **database,
                  int64_t *session_id);

/* sj_query_print runs a prepared query (finalized here) and prints its rows. */
int sj_query_print(const sj_command *command, const sj_query_options *options,
                   sqlite3_stmt *statement);

/* sj_query_print_warnings says on standard error which blocks were left out. */
void sj_query_print_warnings(const sj_command *command, sqlite3 *database);

/* sj_query_number reads a whole number of at least `least`; false when it is none. */
bool sj_query_number(const char *text, int64_t least, int64_t *number);

#endif
