#include "collector-server/cli/query_command.h"

#include "collector-server/cli/cluster_database.h"
#include "collector-server/cli/database_choice.h"
#include "collector-server/cli/session_doubts.h"
#include "collector-server/cli/terminal.h"
#include "collector-server/query/query.h"
#include "proto/base/units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ENGINE_BYTES = 512 };

/* Prints the problems of the session's sums, because most queries read these sums. The sums
 * may be missing or incomplete, or contain folded call paths. */
static void report_doubts(const sj_command *command, sqlite3 *database, int64_t session_id)
{
    sj_session_doubts doubts;
    sj_session_doubts_read(database, session_id, &doubts);
    if (doubts.quarantine_reason[0] != '\0') {
        fprintf(stderr, "sojourn %s: warning: the aggregates of session %lld lack calls: %s; %s\n",
                command->name, (long long)session_id, doubts.quarantine_reason, SJ_QUARANTINE_NEXT);
    }
    if (doubts.folded_paths != 0) {
        fprintf(stderr,
                "sojourn %s: note: session %lld has more call paths than are kept, so the %llu "
                "rarest, with %s, were folded: %s\n",
                command->name, (long long)session_id, (unsigned long long)doubts.folded_paths,
                SJ_COUNTED(doubts.folded_calls, "call"), SJ_FOLDED_NEXT);
    }
    if (doubts.not_recorded[0] != '\0') {
        fprintf(stderr, "sojourn %s: note: of session %lld, %s\n", command->name,
                (long long)session_id, doubts.not_recorded);
    }
    if (doubts.is_abandoned) {
        fprintf(stderr, "sojourn %s: note: session %lld %s\n", command->name, (long long)session_id,
                SJ_ABANDONED_NEXT);
    }
}

int sj_query_parse_file(const sj_command *command, int argc, char **argv, int first,
                        const char **file)
{
    if (argc - first > 1) {
        return sj_command_usage_error(command, "one FILE at most, not \"%s\" too", argv[first + 1]);
    }
    if (argc > first && *file != NULL) {
        return sj_command_usage_error(command, "two databases: --database %s and %s", *file,
                                      argv[first]);
    }
    *file = argc > first ? argv[first] : *file;
    return -1;
}

static sj_status need_sums(const sj_query_options *options, sj_cluster_mirror *mirror,
                           sj_error *error)
{
    const bool has_sets = options->cluster_sets[0] != NULL;
    const char *session = options->session != NULL ? options->session : "last";
    const char *const *sets = has_sets ? options->cluster_sets : &session;
    for (size_t i = 0; i < (has_sets ? 2 : 1); i++) {
        SJ_TRY(sets[i] != NULL ? sj_cluster_mirror_need(mirror, sets[i], error) : SJ_OK);
    }
    return SJ_OK;
}

/* Opens a copy of the cluster's data. Unlinks the copy's files before returning, so they cannot
 * outlive the process. */
static sj_status open_cluster(const sj_command *command, const sj_query_options *options,
                              sqlite3 **database, sj_error *error)
{
    sj_cluster_database copy;
    char engine[ENGINE_BYTES];
    if (options->file != NULL) {
        return sj_fail(error, SJ_EINVAL, "give --cluster or FILE, not both");
    }
    SJ_TRY(sj_cluster_database_open(&options->cluster, &copy, error));
    sj_status status = need_sums(options, copy.mirror, error);
    sj_cluster_mirror_engine(copy.mirror, engine, sizeof(engine));
    sj_cluster_mirror_close(copy.mirror);
    copy.mirror = NULL;
    fprintf(stderr, "sojourn %s: %s\n", command->name,
            engine); /* may also contain the reason why data are missing */
    if (status == SJ_OK) {
        status = sj_database_choose(copy.path, database, error);
    }
    sj_cluster_database_close(&copy);
    return status;
}

int sj_query_open(const sj_command *command, const sj_query_options *options, sqlite3 **database,
                  int64_t *session_id)
{
    sj_error error = {0};
    sj_status status = options->cluster.url != NULL
                           ? open_cluster(command, options, database, &error)
                           : sj_database_choose(options->file, database, &error);
    if (status == SJ_OK && session_id != NULL) {
        status = sj_session_choose(*database, options->session, session_id, &error);
        if (status != SJ_OK) {
            sqlite3_close(*database);
        }
    }
    if (status != SJ_OK) {
        return sj_command_failed(command, &error);
    }
    if (session_id != NULL) {
        report_doubts(command, *database, *session_id);
    }
    return SJ_EXIT_OK;
}

void sj_query_warn_of_totals(const sj_command *command, sqlite3 *database, int64_t session_id)
{
    static const char sql[] =
        "SELECT sum(p.calls), s.mode = 'profile' OR EXISTS (SELECT 1 FROM policies AS y WHERE"
        " y.session_id = s.session_id AND y.mode = 'profile') FROM sessions AS s"
        " JOIN profiles AS p USING (session_id) WHERE s.session_id = ?1";
    static const char recorded[] = "recorded as totals (mode profile), without times of their own,";
    static const char copied[] =
        "stayed in their lab (`sojourn forward calls` gives them to the cluster)";
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, session_id);
    }
    if (row != NULL && sqlite3_step(row) == SQLITE_ROW && sqlite3_column_int64(row, 0) != 0) {
        const int64_t calls = sqlite3_column_int64(row, 0);
        const bool is_profile = sqlite3_column_int(row, 1) != 0;
        fprintf(stderr, "sojourn %s: warning: %s of session %lld %s%s and %s left out here\n",
                command->name, SJ_COUNTED(calls, "call"), (long long)session_id,
                !is_profile  ? ""
                : calls == 1 ? "was "
                             : "were ",
                is_profile ? recorded : copied, calls == 1 ? "is" : "are");
    }
    sqlite3_finalize(row);
}

int sj_query_each(const sj_command *command, sqlite3 *database, const char *sql, sj_sql_binds binds,
                  sj_sql_row_reader *read_row, void *context)
{
    sj_error error = {0};
    const sj_status status = sj_sql_each(database, sql, binds, read_row, context, &error);
    return status == SJ_OK ? SJ_EXIT_OK : sj_command_failed(command, &error);
}

static bool is_database(sqlite3 *database, const char *path)
{
    struct stat own;
    struct stat other;
    const char *name = sqlite3_db_filename(database, "main");
    return name != NULL && stat(name, &own) == 0 && stat(path, &other) == 0 &&
           own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

int sj_query_output_open(const sj_command *command, sqlite3 *database, const char *path,
                         sj_output_file *output)
{
    if (path != NULL && is_database(database, path)) {
        return sj_command_error(command, SJ_EXIT_FAILED,
                                "%s is the database: writing to it would destroy it", path);
    }
    return sj_output_file_open(command, path, output);
}

void sj_query_print_warnings(const sj_command *command, sqlite3 *database)
{
    char *warnings = sj_query_read_warnings(database);
    if (warnings != NULL) {
        fprintf(stderr, "sojourn %s: warning: %s\n", command->name, warnings);
    }
    sqlite3_free(warnings);
}

/* Writes a row. Returns SJ_EEXIST if the output cannot be written. */
static sj_status write_row(void *writer, sqlite3_stmt *row)
{
    return sj_result_writer_row(writer, row, true) ? SJ_OK : SJ_EEXIST;
}

int sj_query_print(const sj_command *command, const sj_query_options *options,
                   sqlite3_stmt *statement)
{
    sj_result_writer writer;
    sj_terminal own;
    sj_terminal *terminal = options->terminal != NULL ? options->terminal : &own;
    if (options->terminal == NULL) {
        sj_terminal_open(terminal);
    }
    sj_result_writer_init(&writer, stdout, options->format);
    writer.wide = options->wide;
    writer.hidden_first = options->hidden_first;
    writer.space = terminal->columns;
    writer.terminal = terminal;
    sj_error error = {0};
    sj_status status = sj_result_writer_row(&writer, statement, false) ? SJ_OK : SJ_EEXIST;
    if (status == SJ_OK) {
        status = sj_sql_each_row(statement, write_row, &writer, &error);
    }
    const bool ended = sj_result_writer_end(&writer);
    const bool written = sj_terminal_close(terminal) && ended;
    sqlite3 *database = sqlite3_db_handle(statement);
    int exit_code = SJ_EXIT_OK;
    if (status != SJ_OK && status != SJ_EEXIST) {
        exit_code = sj_command_failed(command, &error);
    } else if (!written) {
        exit_code = sj_command_error(command, SJ_EXIT_FAILED, "cannot write the result");
    }
    sqlite3_finalize(statement);
    sj_query_print_warnings(command, database);
    return exit_code;
}
