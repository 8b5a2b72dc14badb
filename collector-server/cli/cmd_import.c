/* `sojourn import` is the counterpart of `sojourn export`: both convert between a session and a
 * file of another tool. `sojourn session export` and `sojourn session import` copy whole sessions
 * between databases of Sojourn, without a conversion. */
#include "collector-server/cli/commands.h"
#include "collector-server/cli/database_choice.h"
#include "collector-server/cli/json_output.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/cli/text_width.h"
#include "collector-server/cli/work_progress.h"
#include "collector-server/fleet/audit.h"
#include "collector-server/import/importer.h"
#include "collector-server/maintenance/part_file.h"
#include "collector-server/maintenance/session_copy.h"
#include "collector-server/store/database.h"
#include "collector-server/store/foreign_log.h"
#include "proto/base/units.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { AUDITED_BYTES = 4096 };

#define DEFAULT_DATABASE "sojourn-imported.db"

typedef struct import_options {
    const char *database;
    const char *format;
    const char *name;
    bool as_json;
    json_t *rows; /* rows of the JSON output; NULL: the output is text */
} import_options;

/* The database that gets the sessions. One that does not exist is created for the first of them. */
typedef struct import_target {
    char path[PATH_MAX];
    sqlite3 *database; /* NULL: not created yet */
    bool existed;
} import_target;

/* The database of the file that is being imported, and what SQLite keeps beside it. A signal
 * handler deletes them. */
static const char *const part_ends[] = {"", "-wal", "-shm", "-journal", SJ_LOG_BASE_END};
static char part_files[sizeof(part_ends) / sizeof(part_ends[0])][PATH_MAX + 32];

typedef struct imported {
    const sj_importer *importer;
    sj_import_sums sums;
    int64_t session_id;
} imported;

#define FORMATS                                                                                    \
    "chrome-json, speedscope, perf-script, folded, uftrace, callgrind, pprof, perfetto, "          \
    "function.txt, xray, android-trace, jfr"

static sj_status print_note(void *context, sqlite3_stmt *row)
{
    (void)context;
    const char *note = (const char *)sqlite3_column_text(row, 0);
    printf("  ");
    sj_text_write(stdout, note, strlen(note));
    printf("\n");
    return SJ_OK;
}

static int print_notes(sqlite3 *database, int64_t session_id)
{
    return sj_query_each(&sj_command_import, database,
                         "SELECT note FROM annotations WHERE session_id = ?1 AND author = "
                         "'" SJ_IMPORT_AUTHOR "' ORDER BY annotation_id",
                         SJ_SQL_INTS(session_id), print_note, NULL);
}

static int report(const import_options *options, sqlite3 *database, const char *path,
                  const imported *done)
{
    const sj_import_sums *sums = &done->sums;
    if (options->rows != NULL) {
        (void)json_array_append_new(
            options->rows,
            json_pack("{so ss sI sI sI sI sI}", "file", sj_json_clean_string(path), "format",
                      done->importer->name, "session_id", (json_int_t)done->session_id, "calls",
                      (json_int_t)sums->calls, "samples", (json_int_t)sums->samples, "threads",
                      (json_int_t)sums->threads, "functions", (json_int_t)sums->functions));
        return SJ_EXIT_OK;
    }
    sj_text_write(stdout, path, strlen(path));
    printf(" is session %lld now: %s, %s, format %s\n", (long long)done->session_id,
           sums->samples != 0 ? SJ_COUNTED(sums->samples, "sample")
                              : SJ_COUNTED(sums->calls, "call"),
           SJ_COUNTED(sums->functions, "function"), done->importer->name);
    return print_notes(database, done->session_id);
}

static void remove_part_and_end(int number)
{
    for (size_t i = 0; i < sizeof(part_files) / sizeof(part_files[0]); i++) {
        if (part_files[i][0] != '\0') {
            (void)unlink(part_files[i]);
        }
    }
    (void)raise(number); /* ends the process, because of SA_RESETHAND */
}

/* Makes the signals that end a program delete the part before. An ignored signal stays ignored. */
static void handle_ending_signals(sigset_t *ending)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction action = {.sa_handler = remove_part_and_end,
                                     .sa_flags = (int)SA_RESETHAND};
    sigemptyset(ending);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct sigaction now;
        sigaddset(ending, numbers[i]);
        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL) {
            (void)sigaction(numbers[i], &action, NULL);
        }
    }
}

/* Creates an empty file beside the target, part_files[0]. */
static int make_part(const import_target *target)
{
    sigset_t ending;
    sigset_t before;
    char part[PATH_MAX + 16];
    handle_ending_signals(&ending);
    (void)snprintf(part, sizeof(part), "%s.import-XXXXXX", target->path);
    sigprocmask(SIG_BLOCK, &ending, &before);
    const int descriptor = mkstemp(part);
    for (size_t i = 0; descriptor >= 0 && i < sizeof(part_files) / sizeof(part_files[0]); i++) {
        (void)snprintf(part_files[i], sizeof(part_files[i]), "%s%s", part, part_ends[i]);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (descriptor < 0) {
        return sj_command_error(&sj_command_import, SJ_EXIT_FAILED,
                                "cannot create a file beside %s: %s", target->path,
                                strerror(errno));
    }
    close(descriptor);
    return SJ_EXIT_OK;
}

/* Copies the session of the part to the target. */
static sj_status copy_session(const char *path, import_target *target, imported *done,
                              sj_error *error)
{
    if (target->database == NULL) {
        SJ_TRY(sj_database_open(target->path, SJ_DATABASE_CREATE, &target->database, error));
    }
    sj_copied_session copied = {0};
    const sj_status status = sj_session_copy(part_files[0], 1, target->database, &copied, error);
    done->session_id = copied.session_id;
    return status == SJ_EEXIST ? sj_fail(error, SJ_EEXIST, "%s was imported before", path) : status;
}

/* Imports one file. Makes the session in a temporary database first, so that a damaged file adds
 * nothing. */
static int import_file(const import_options *options, const sj_importer *importer, const char *path,
                       import_target *target)
{
    char object[AUDITED_BYTES];
    imported done = {0};
    sj_error error = {0};
    const int code = make_part(target);
    if (code != SJ_EXIT_OK) {
        return code;
    }
    const sj_import_request request = {
        .path = path, .importer = importer, .name = options->name, .database = part_files[0]};
    sj_status status = sj_import_file(&request, &done.importer, &done.sums, &error);
    if (status == SJ_OK) {
        status = copy_session(path, target, &done, &error);
    }
    sj_part_remove(part_files[0]);
    sj_work_progress_hide();
    sj_text_clean(error.text); /* it may quote the file */
    (void)snprintf(object, sizeof(object), "import %s", path);
    if (target->database != NULL) {
        sj_audit_add_local(target->database, "import", object,
                           status == SJ_OK ? "done" : error.text);
    }
    if (status != SJ_OK) {
        return sj_command_failed(&sj_command_import, &error);
    }
    return report(options, target->database, path, &done);
}

/* Chooses the database as all commands do. If there is none yet, it will be DEFAULT_DATABASE. */
static int choose_database(const import_options *options, char path[PATH_MAX])
{
    sj_error error = {0};
    const sj_status status = sj_database_path(options->database, path, &error);
    if (status == SJ_ENOTFOUND && options->database == NULL) {
        (void)snprintf(path, PATH_MAX, "%s", DEFAULT_DATABASE);
        return SJ_EXIT_OK;
    }
    return status == SJ_OK ? SJ_EXIT_OK : sj_command_failed(&sj_command_import, &error);
}

/* True if no session was stored, not even by another import that began meanwhile. */
static bool is_empty(sqlite3 *database)
{
    sqlite3_stmt *row = NULL;
    const bool empty = sqlite3_prepare_v2(database, "SELECT 1 FROM sessions LIMIT 1", -1, &row,
                                          NULL) == SQLITE_OK &&
                       sqlite3_step(row) == SQLITE_DONE;
    sqlite3_finalize(row);
    return empty;
}

static int import_files(const import_options *options, const sj_importer *importer, char **files,
                        int count)
{
    import_target target = {.database = NULL};
    sj_error error = {0};
    int code = choose_database(options, target.path);
    if (code != SJ_EXIT_OK) {
        return code;
    }
    target.existed = access(target.path, F_OK) == 0;
    if (target.existed &&
        sj_database_open(target.path, SJ_DATABASE_CREATE, &target.database, &error) != SJ_OK) {
        return sj_command_failed(&sj_command_import, &error);
    }
    for (int i = 0; i < count; i++) {
        const int one = import_file(options, importer, files[i], &target);
        code = one != SJ_EXIT_OK ? one : code;
    }
    const bool is_useless = !target.existed && target.database != NULL && is_empty(target.database);
    sqlite3_close(target.database);
    if (is_useless) {
        sj_part_remove(target.path);
    }
    return code;
}

static int run_import(int argc, char **argv)
{
    import_options options = {0};
    int first = 0;
    const int code = sj_options_parse(&sj_command_import, argc, argv, &options, &first);
    if (code >= 0) {
        return code;
    }
    const sj_importer *importer = options.format != NULL ? sj_importer_find(options.format) : NULL;
    if (options.format != NULL && importer == NULL) {
        return sj_command_usage_error(&sj_command_import, "unknown format '%s'; the formats are %s",
                                      options.format, FORMATS);
    }
    if (first >= argc) {
        return sj_command_usage_error(&sj_command_import, "name the file to import");
    }
    sj_work_progress_start();
    options.rows = options.as_json ? json_array() : NULL;
    const int exit_code = import_files(&options, importer, argv + first, argc - first);
    sj_work_progress_stop();
    const int written =
        options.as_json ? sj_json_output(&sj_command_import, options.rows) : SJ_EXIT_OK;
    return exit_code != SJ_EXIT_OK ? exit_code : written;
}

static const sj_option import_table[] = {
    SJ_DATABASE_OPTION(offsetof(import_options, database)),
    {.name = "format",
     .argument = "FORMAT",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(import_options, format),
     .help = "default: by the file's content\n"
             "chrome-json: trace events of chrome://tracing and Perfetto,\n"
             "speedscope: calls or samples for speedscope.app,\n"
             "perf-script: samples with stacks, the text of perf script,\n"
             "folded: call paths with self time, of flame graph tools,\n"
             "uftrace: the data folder of uftrace record,\n"
             "callgrind: functions and callees, of valgrind's callgrind,\n"
             "pprof: call paths, of Go, gperftools and other tools,\n"
             "perfetto: track events of Perfetto's binary traces,\n"
             "function.txt: one line for each entry and exit,\n"
             "xray: clang's XRay, or the text of llvm-xray convert,\n"
             "android-trace: method traces of Android,\n"
             "jfr: samples of JDK Flight Recorder"},
    {.name = "name",
     .argument = "NAME",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(import_options, name),
     .help = "label of the session (default: the file's name)"},
    {.name = "json",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(import_options, as_json),
     .help = "write what was imported as JSON"},
    {0}};

const sj_command sj_command_import = {
    .name = "import",
    .summary = "make sessions from files of other tools",
    .usage = "sojourn import [OPTIONS] FILE...",
    .help =
        "Adds each FILE to the database as a session of its own, which all commands read. \"-\"\n"
        "is standard input. The tag `imported` names the format. Notes on the session say\n"
        "what the file lacks. Samples make a profile, in which each sample counts as a call.\n"
        "A file that is damaged adds nothing. `sojourn session import` copies sessions from\n"
        "another Sojourn database instead.\n",
    .options = import_table,
    .examples = "Examples:\n"
                "  sojourn import trace.json\n"
                "  sojourn import uftrace.data\n"
                "  sojourn import --format folded --database lab.db stacks.txt\n",
    .run = run_import,
};
