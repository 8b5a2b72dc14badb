/* `sojourn import` is the counterpart of `sojourn export`: both convert between a session and a
 * file of another tool. `sojourn session export` and `sojourn session import` copy whole sessions
 * between databases of Sojourn, without a conversion. */
#include "collector-server/cli/commands.h"
#include "collector-server/cli/database_choice.h"
#include "collector-server/cli/json_output.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/cli/work_progress.h"
#include "collector-server/fleet/audit.h"
#include "collector-server/import/importer.h"
#include "collector-server/maintenance/part_file.h"
#include "collector-server/maintenance/session_copy.h"
#include "collector-server/store/database.h"
#include "proto/base/units.h"

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

typedef struct imported {
    const sj_importer *importer;
    sj_import_sums sums;
    int64_t session_id;
} imported;

#define FORMATS "chrome-json, speedscope, perf-script, folded, uftrace"

static void print_notes(sqlite3 *database, int64_t session_id)
{
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(database,
                           "SELECT note FROM annotations WHERE session_id = ?1 AND author = ?2 "
                           "ORDER BY annotation_id",
                           -1, &row, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, session_id);
        sqlite3_bind_text(row, 2, SJ_IMPORT_AUTHOR, -1, SQLITE_STATIC);
        while (sqlite3_step(row) == SQLITE_ROW) {
            printf("  %s\n", (const char *)sqlite3_column_text(row, 0));
        }
    }
    sqlite3_finalize(row);
}

static void report(const import_options *options, sqlite3 *database, const char *path,
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
        return;
    }
    printf("%s is session %lld now: %s, %s, format %s\n", path, (long long)done->session_id,
           sums->samples != 0 ? SJ_COUNTED(sums->samples, "sample")
                              : SJ_COUNTED(sums->calls, "call"),
           SJ_COUNTED(sums->functions, "function"), done->importer->name);
    print_notes(database, done->session_id);
}

/* Copies the session of the database `part` to `database`. */
static sj_status copy_session(const char *part, const char *path, sqlite3 *database, imported *done,
                              sj_error *error)
{
    const sj_status status = sj_session_copy(part, 1, database, &done->session_id, error);
    return status == SJ_EEXIST ? sj_fail(error, SJ_EEXIST, "%s was imported before", path) : status;
}

/* Imports one file. Makes the session in a temporary database first, so that a damaged file adds
 * nothing. */
static int import_file(const import_options *options, const sj_importer *importer, const char *path,
                       const char *database_path, sqlite3 *database)
{
    char part[PATH_MAX + 16];
    char object[AUDITED_BYTES];
    imported done = {0};
    sj_error error = {0};
    (void)snprintf(part, sizeof(part), "%s.import-XXXXXX", database_path);
    const int descriptor = mkstemp(part);
    if (descriptor < 0) {
        return sj_command_error(&sj_command_import, SJ_EXIT_FAILED,
                                "cannot create a file beside %s", database_path);
    }
    close(descriptor);
    const sj_import_request request = {
        .path = path, .importer = importer, .name = options->name, .database = part};
    sj_status status = sj_import_file(&request, &done.importer, &done.sums, &error);
    if (status == SJ_OK) {
        status = copy_session(part, path, database, &done, &error);
    }
    sj_part_remove(part);
    sj_work_progress_hide();
    (void)snprintf(object, sizeof(object), "import %s", path);
    sj_audit_add_local(database, "import", object, status == SJ_OK ? "done" : "failed");
    if (status != SJ_OK) {
        return sj_command_failed(&sj_command_import, &error);
    }
    report(options, database, path, &done);
    return SJ_EXIT_OK;
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

static int import_files(const import_options *options, const sj_importer *importer, char **files,
                        int count)
{
    char path[PATH_MAX];
    sqlite3 *database = NULL;
    sj_error error = {0};
    int code = choose_database(options, path);
    if (code != SJ_EXIT_OK) {
        return code;
    }
    const bool existed = access(path, F_OK) == 0;
    if (sj_database_open(path, SJ_DATABASE_CREATE, &database, &error) != SJ_OK) {
        return sj_command_failed(&sj_command_import, &error);
    }
    int done = 0;
    for (int i = 0; i < count; i++) {
        const int one = import_file(options, importer, files[i], path, database);
        done += one == SJ_EXIT_OK ? 1 : 0;
        code = one != SJ_EXIT_OK ? one : code;
    }
    sqlite3_close(database);
    if (!existed && done == 0) {
        sj_part_remove(path);
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
             "uftrace: the data folder of uftrace record"},
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
