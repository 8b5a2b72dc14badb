#include "collector-server/cli/commands.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/export/exporter.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { OPTION_FORMAT = 1, OPTION_OUTPUT, OPTION_HELP };

static int write_export(sqlite3 *database, int64_t session_id, const sj_exporter *exporter,
                        const char *path)
{
    FILE *output = path != NULL ? fopen(path, "we") : stdout;
    if (output == NULL) {
        return sj_command_error(&sj_command_export, SJ_EXIT_FAILED, "cannot write %s: %s", path,
                                strerror(errno));
    }
    sj_error error = {0};
    const sj_status status = exporter->write(database, session_id, output, &error);
    const bool failed = ferror(output) != 0;
    const bool closed = path != NULL ? fclose(output) == 0 : fflush(output) == 0;
    sj_query_print_warnings(&sj_command_export, database);
    if (status != SJ_OK) {
        return sj_command_error(&sj_command_export, SJ_EXIT_FAILED, "%s", error.text);
    }
    if (failed || !closed) {
        return sj_command_error(&sj_command_export, SJ_EXIT_FAILED, "cannot write %s: %s",
                                path != NULL ? path : "standard output", strerror(errno));
    }
    return SJ_EXIT_OK;
}

static int run_export(int argc, char **argv)
{
    static const struct option long_options[] = {
        {"session", required_argument, NULL, SJ_OPTION_SESSION},
        {"format", required_argument, NULL, OPTION_FORMAT},
        {"output", required_argument, NULL, OPTION_OUTPUT},
        {"help", no_argument, NULL, OPTION_HELP},
        {NULL, 0, NULL, 0}};
    sj_query_options options = {0};
    const char *format = "function.txt";
    const char *path = NULL;
    int option;
    optind = 1;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":o:", long_options, NULL)) != -1) {
        if (sj_query_common_option(&options, option, optarg)) {
            continue;
        }
        if (option == OPTION_HELP) {
            return sj_command_help(&sj_command_export);
        }
        if (option == OPTION_FORMAT) {
            format = optarg;
        } else if (option == OPTION_OUTPUT || option == 'o') {
            path = strcmp(optarg, "-") == 0 ? NULL : optarg;
        } else {
            return sj_command_usage_error(
                &sj_command_export, option == ':' ? "%s needs a value" : "there is no option %s",
                argv[optind - 1]);
        }
    }
    const sj_exporter *exporter = sj_exporter_find(format);
    if (exporter == NULL) {
        return sj_command_usage_error(
            &sj_command_export,
            "--format takes function.txt, folded, chrome-json or report.txt, not '%s'", format);
    }
    if (argc - optind > 1) {
        return sj_command_usage_error(&sj_command_export, "one FILE at most");
    }
    options.file = argv[optind];
    sqlite3 *database;
    int64_t session_id;
    int exit_code = sj_query_open(&sj_command_export, &options, &database, &session_id);
    if (exit_code == SJ_EXIT_OK) {
        exit_code = write_export(database, session_id, exporter, path);
        sqlite3_close(database);
    }
    return exit_code;
}

const sj_command sj_command_export = {
    .name = "export",
    .summary = "write a session for other tools: function.txt, folded, chrome-json, report.txt",
    .usage = "sojourn export [OPTIONS] [FILE]",
    .help = "Options:\n"
            "  --format FORMAT   function.txt (default): one line an entry or exit,\n"
            "                    folded: call paths with self time, for flame graph tools,\n"
            "                    chrome-json: trace events for chrome://tracing and Perfetto,\n"
            "                    report.txt: what each function cost\n"
            "  -o, --output OUT  write to OUT (default: standard output)\n"
            "  --session ID      a session_id, the beginning of a uuid, or `last` (default)\n"
            "  --help            this text\n\n"
            "Examples:\n"
            "  sojourn export -o function.txt\n"
            "  sojourn export --format chrome-json --session 3 -o trace.json lab.db\n",
    .run = run_export,
};
