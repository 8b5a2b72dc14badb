#include "collector-server/cli/query_command.h"

#include "collector-server/cli/apart.h"
#include "collector-server/cli/database_choice.h"
#include "collector-server/query/query.h"

#include <errno.h>
#include <stdlib.h>

bool sj_query_common_option(sj_query_options *options, int option, const char *value)
{
    switch (option) {
    case SJ_OPTION_JSON:
        options->format = SJ_RESULT_JSON;
        return true;
    case SJ_OPTION_CSV:
        options->format = SJ_RESULT_CSV;
        return true;
    case SJ_OPTION_MARKDOWN:
        options->format = SJ_RESULT_MARKDOWN;
        return true;
    case SJ_OPTION_SESSION:
        options->session = value;
        return true;
    case SJ_OPTION_WIDE:
        options->wide = true;
        return true;
    default:
        return false;
    }
}

/* What is asked for is a sum, mostly, and this session's lack calls. */
static void warn_if_apart(const sj_command *command, sqlite3 *database, int64_t session_id)
{
    char reason[SJ_APART_TEXT_BYTES];
    if (sj_apart_reason(database, session_id, reason)) {
        fprintf(stderr, "sojourn %s: warning: the sums of session %lld lack calls: %s; %s\n",
                command->name, (long long)session_id, reason, SJ_APART_NEXT);
    }
}

int sj_query_open(const sj_command *command, const sj_query_options *options, sqlite3 **database,
                  int64_t *session_id)
{
    sj_error error = {0};
    sj_status status = sj_database_choose(options->file, database, &error);
    if (status == SJ_OK && session_id != NULL) {
        status = sj_session_choose(*database, options->session, session_id, &error);
        if (status != SJ_OK) {
            sqlite3_close(*database);
        }
    }
    if (status != SJ_OK) {
        return sj_command_error(
            command, status == SJ_ENOTFOUND ? SJ_EXIT_NOT_FOUND : SJ_EXIT_FAILED, "%s", error.text);
    }
    if (session_id != NULL) {
        warn_if_apart(command, *database, *session_id);
    }
    return SJ_EXIT_OK;
}

void sj_query_print_warnings(const sj_command *command, sqlite3 *database)
{
    char *warnings = sj_query_take_warnings(database);
    if (warnings != NULL) {
        fprintf(stderr, "sojourn %s: warning: %s\n", command->name, warnings);
    }
    sqlite3_free(warnings);
}

int sj_query_print(const sj_command *command, const sj_query_options *options,
                   sqlite3_stmt *statement)
{
    sj_result_writer writer;
    sj_result_writer_init(&writer, stdout, options->format);
    writer.wide = options->wide;
    bool more = sj_result_writer_row(&writer, statement, false);
    int result = SQLITE_DONE;
    while (more && (result = sqlite3_step(statement)) == SQLITE_ROW) {
        more = sj_result_writer_row(&writer, statement, true);
    }
    const bool written = sj_result_writer_end(&writer);
    sqlite3 *database = sqlite3_db_handle(statement);
    int exit_code = SJ_EXIT_OK;
    if (more && result != SQLITE_DONE) {
        exit_code = sj_command_error(command, SJ_EXIT_FAILED, "%s", sqlite3_errmsg(database));
    } else if (!written) {
        exit_code = sj_command_error(command, SJ_EXIT_FAILED, "cannot write the result");
    }
    sqlite3_finalize(statement);
    sj_query_print_warnings(command, database);
    return exit_code;
}

bool sj_query_number(const char *text, int64_t least, int64_t *number)
{
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < least) {
        return false;
    }
    *number = value;
    return true;
}
