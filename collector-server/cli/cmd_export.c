#include "collector-server/cli/call_choice.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/output_folder.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/cli/work_progress.h"
#include "collector-server/export/exporter.h"
#include "collector-server/http/one_file.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int write_export(sqlite3 *database, const sj_call_part *part, const sj_exporter *exporter,
                        const char *path)
{
    sj_error error = {0};
    sj_output_file output;
    int code = sj_query_output_open(&sj_command_export, database, path, &output);
    if (code != SJ_EXIT_OK) {
        return code;
    }
    const sj_status status = exporter->write(database, part, output.file, &error);
    sj_query_print_warnings(&sj_command_export, database);
    if (status != SJ_OK) {
        code = sj_command_failed(&sj_command_export, &error);
    }
    return sj_output_file_close(&sj_command_export, &output, code);
}

static int write_folder(sqlite3 *database, const sj_call_part *part, const sj_exporter *exporter,
                        const char *path)
{
    sj_error error = {0};
    sj_output_folder output;
    int code = sj_output_folder_open(&sj_command_export, path, &output);
    if (code != SJ_EXIT_OK) {
        return code;
    }
    const sj_status status = exporter->write_folder(database, part, output.unfinished, &error);
    sj_query_print_warnings(&sj_command_export, database);
    if (status != SJ_OK) {
        code = sj_command_failed(&sj_command_export, &error);
    }
    return sj_output_folder_close(&sj_command_export, &output, code);
}

typedef struct export_request {
    sj_query_options query;
    sj_call_choice choice;
    int64_t max_depth;
    const char *format;
    const char *output;
} export_request;

#define FORMATS                                                                                    \
    "function.txt, folded, chrome-json, perfetto, speedscope, firefox, pprof, callgrind, lcov, "   \
    "cobertura, otlp, otlp-proto, ctf, report.txt, arrow, parquet or html"

/* Returns the exporter that --format names, NULL if there is none of that name. Without --format,
 * returns the exporter for the ending of the output's name, by default the one for function.txt. */
static const sj_exporter *choose_exporter(const export_request *request)
{
    if (request->format == NULL) {
        const sj_exporter *named = sj_exporter_ending(&sj_exporter_html, request->output) != 0
                                       ? &sj_exporter_html
                                       : sj_exporter_of_file(request->output);
        return named != NULL ? named : &sj_exporter_function_txt;
    }
    return strcmp(request->format, sj_exporter_html.name) == 0 ? &sj_exporter_html
                                                               : sj_exporter_find(request->format);
}

static int export_part(export_request *request, const sj_exporter *exporter, sqlite3 *database,
                       int64_t session_id)
{
    sj_error error = {0};
    if (sj_call_choice_find(database, session_id, &request->choice, &error) != SJ_OK) {
        return sj_command_failed(&sj_command_export, &error);
    }
    const sj_call_part part = {.session_id = session_id,
                               .selection = request->choice.selection,
                               .functions = request->choice.functions,
                               .levels =
                                   request->max_depth < INT64_MAX ? request->max_depth + 1 : 0};
    int code;
    if (exporter->is_whole && sj_call_part_is_limited(&part)) {
        code = sj_command_usage_error(&sj_command_export,
                                      "%s is made of the sums of whole sessions: leave out the "
                                      "options that choose calls, or take another format",
                                      exporter->name);
    } else if (exporter->write_folder != NULL) {
        code = write_folder(database, &part, exporter, request->output);
    } else {
        code = write_export(database, &part, exporter,
                            strcmp(request->output, "-") == 0 ? NULL : request->output);
    }
    sj_call_choice_deinit(&request->choice);
    return code;
}

static int export_session(export_request *request, const sj_exporter *exporter)
{
    sqlite3 *database;
    int64_t session_id;
    int code = sj_query_open(&sj_command_export, &request->query, &database, &session_id);
    if (code == SJ_EXIT_OK) {
        if (exporter->lists_calls) {
            sj_query_warn_of_totals(&sj_command_export, database, session_id);
        }
        if (strcmp(request->output, "-") != 0 || isatty(STDOUT_FILENO) == 0) {
            sj_work_progress_start();
        }
        code = export_part(request, exporter, database, session_id);
        sqlite3_close(database);
    }
    return code;
}

static int run_export(int argc, char **argv)
{
    export_request request = {.output = "-", .max_depth = -1};
    int first = 0;
    const int code = sj_options_parse(&sj_command_export, argc, argv, &request, &first);
    if (code >= 0) {
        return code;
    }
    const sj_exporter *exporter = choose_exporter(&request);
    if (exporter == NULL) {
        return sj_command_usage_error(&sj_command_export,
                                      "--format does not know '%s': it takes %s", request.format,
                                      FORMATS);
    }
    if (exporter->write_folder != NULL && strcmp(request.output, "-") == 0) {
        return sj_command_usage_error(&sj_command_export, "%s is a folder: name it with --output",
                                      exporter->name);
    }
    const int file_code =
        sj_query_parse_file(&sj_command_export, argc, argv, first, &request.query.file);
    if (file_code >= 0) {
        return file_code;
    }
    const int choice_code = sj_call_choice_check(&sj_command_export, &request.choice);
    return choice_code >= 0 ? choice_code : export_session(&request, exporter);
}

static const sj_option export_options[] = {
    SJ_DATABASE_OPTION(offsetof(export_request, query.file)),
    {.name = "format",
     .argument = "FORMAT",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(export_request, format),
     .help = "default: by the ending of OUT, else function.txt\n"
             "function.txt: one line for each entry and exit,\n"
             "folded: call paths with self time, for flame graph tools,\n"
             "chrome-json: trace events for chrome://tracing and Perfetto,\n"
             "report.txt: what each function cost,\n"
             "arrow: the calls as an Arrow IPC file, for Python and data frames,\n"
             "parquet: the calls, compressed, for DuckDB and the like,\n"
             "perfetto: Perfetto's binary trace, for ui.perfetto.dev,\n"
             "speedscope: every call, for speedscope.app,\n"
             "firefox: call stacks over time, for profiler.firefox.com,\n"
             "pprof: call paths with calls and self time, for go tool pprof,\n"
             "callgrind: functions and callees, for KCachegrind,\n"
             "lcov: coverage of functions and lines, for genhtml,\n"
             "cobertura: the same as XML, for build servers,\n"
             "otlp: chosen calls as spans of OpenTelemetry, as JSON,\n"
             "otlp-proto: the same as protobuf,\n"
             "ctf: a folder with a CTF 1.8 trace, for babeltrace2,\n"
             "html: a page that opens without a server"},
    {.name = "output",
     .letter = 'o',
     .argument = "OUT",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(export_request, output),
     .help = "write to OUT (default: standard output)"},
    SJ_QUERY_SESSION_OPTION(offsetof(export_request, query)),
    SJ_CALL_CHOICE_OPTIONS(offsetof(export_request, choice)),
    SJ_CALL_FUNCTION_OPTIONS(offsetof(export_request, choice),
                             "only calls of these functions, and all calls below them",
                             "only calls of functions of these modules, and all calls below them"),
    {.name = "depth",
     .argument = "N",
     .kind = SJ_ARG_NUMBER,
     .offset = offsetof(export_request, max_depth),
     .least = 0,
     .help = "leave out calls deeper than N (0: the outermost written calls only)"},
    {0}};

const sj_command sj_command_export = {
    .name = "export",
    .summary = "write a session for other tools",
    .usage = "sojourn export [OPTIONS] [FILE]",
    .options = export_options,
    .examples = "Examples:\n"
                "  sojourn export -o function.txt\n"
                "  sojourn export --session 3 -o trace.perfetto lab.db\n"
                "  sojourn export -o calls.parquet lab.db\n"
                "  sojourn export --thread worker --from 2s --to 3s -o part.json lab.db\n"
                "  sojourn export --function 'parse_*' -o parse.speedscope.json\n"
                "  sojourn export -o session.html\n",
    .run = run_export,
};
