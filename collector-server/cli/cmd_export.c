#include "collector-server/cli/commands.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/cli/work_progress.h"
#include "collector-server/export/exporter.h"
#include "collector-server/http/one_file.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static int write_export(sqlite3 *database, int64_t session_id, const sj_exporter *exporter,
                        const char *path)
{
    FILE *output = path != NULL ? sj_query_output_open(&sj_command_export, database, path) : stdout;
    if (output == NULL) {
        return SJ_EXIT_FAILED;
    }
    sj_error error = {0};
    const sj_status status = exporter->write(database, session_id, output, &error);
    const bool failed = ferror(output) != 0;
    const bool closed = path != NULL ? fclose(output) == 0 : fflush(output) == 0;
    const int problem = closed ? 0 : errno; /* errno of an earlier failed write is lost */
    sj_query_print_warnings(&sj_command_export, database);
    if (status != SJ_OK) {
        return sj_command_failed(&sj_command_export, &error);
    }
    if (failed || !closed) {
        return sj_command_error(&sj_command_export, SJ_EXIT_FAILED, "cannot write %s%s%s",
                                path != NULL ? path : "standard output", problem != 0 ? ": " : "",
                                problem != 0 ? strerror(problem) : "");
    }
    return SJ_EXIT_OK;
}

typedef struct export_request {
    sj_query_options query;
    const char *format;
    const char *output;
} export_request;

static int run_export(int argc, char **argv)
{
    export_request request = {.format = "function.txt", .output = "-"};
    int first = 0;
    const int code = sj_options_parse(&sj_command_export, argc, argv, &request, &first);
    if (code >= 0) {
        return code;
    }
    const sj_exporter *exporter = strcmp(request.format, sj_exporter_html.name) == 0
                                      ? &sj_exporter_html
                                      : sj_exporter_find(request.format);
    if (exporter == NULL) {
        return sj_command_usage_error(&sj_command_export,
                                      "--format takes function.txt, folded, chrome-json, "
                                      "report.txt, arrow, parquet or html, not '%s'",
                                      request.format);
    }
    const int taken =
        sj_query_take_file(&sj_command_export, argc, argv, first, &request.query.file);
    if (taken >= 0) {
        return taken;
    }
    sqlite3 *database;
    int64_t session_id;
    int exit_code = sj_query_open(&sj_command_export, &request.query, &database, &session_id);
    if (exit_code == SJ_EXIT_OK) {
        if (exporter->lists_calls) {
            sj_query_warn_of_totals(&sj_command_export, database, session_id);
        }
        const char *path = strcmp(request.output, "-") == 0 ? NULL : request.output;
        if (path != NULL || isatty(STDOUT_FILENO) == 0) {
            sj_work_progress_start();
        }
        exit_code = write_export(database, session_id, exporter, path);
        sqlite3_close(database);
    }
    return exit_code;
}

static const sj_option export_options[] = {
    SJ_DATABASE_OPTION(offsetof(export_request, query.file)),
    {.name = "format",
     .argument = "FORMAT",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(export_request, format),
     .help = "function.txt (default): one line an entry or exit,\n"
             "folded: call paths with self time, for flame graph tools,\n"
             "chrome-json: trace events for chrome://tracing and Perfetto,\n"
             "report.txt: what each function cost,\n"
             "arrow: the calls as an Arrow IPC file, for Python and data frames,\n"
             "parquet: the calls, compressed, for DuckDB and the like,\n"
             "html: a page that opens without a server"},
    {.name = "output",
     .letter = 'o',
     .argument = "OUT",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(export_request, output),
     .help = "write to OUT (default: standard output)"},
    SJ_QUERY_SESSION_OPTION(offsetof(export_request, query)),
    {0}};

const sj_command sj_command_export = {
    .name = "export",
    .summary = "write a session for other tools",
    .usage = "sojourn export [OPTIONS] [FILE]",
    .options = export_options,
    .examples = "Examples:\n"
                "  sojourn export -o function.txt\n"
                "  sojourn export --format chrome-json --session 3 -o trace.json lab.db\n"
                "  sojourn export --format parquet -o calls.parquet lab.db\n"
                "  sojourn export --format html -o session.html\n",
    .run = run_export,
};
