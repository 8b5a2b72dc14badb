#include "collector-server/cli/record_options.h"

#include "agent/abi/arena.h"
#include "collector-server/cli/policy_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_WAIT_MS = 86400 * 1000, MAX_PLAN_WAIT_MS = 25000, MAX_FUNCTION_TXT_FILES = 1000 };

static sj_status parse_children(const sj_option *option, void *values, const char *text,
                                sj_error *error)
{
    sj_record_values *options = values;
    (void)option;
    if (strcmp(text, "all") == 0) {
        options->recording.children = SJ_FOLLOW_FORK | SJ_FOLLOW_EXEC;
    } else if (strcmp(text, "forked") == 0) {
        options->recording.children = SJ_FOLLOW_FORK;
    } else if (strcmp(text, "none") == 0) {
        options->recording.children = SJ_FOLLOW_NONE;
    } else {
        return sj_fail(error, SJ_EINVAL,
                       "--children is \"all\", \"forked\" or \"none\", not \"%s\"", text);
    }
    return SJ_OK;
}

static sj_status parse_max_bytes(const sj_option *option, void *values, const char *text,
                                 sj_error *error)
{
    sj_record_values *options = values;
    (void)option;
    return sj_option_number("--max-bytes", text, INT64_MAX, &options->recording.max_bytes, error);
}

static sj_status parse_function_txt_size(const sj_option *option, void *values, const char *text,
                                         sj_error *error)
{
    sj_record_values *options = values;
    (void)option;
    return sj_option_number("--function-txt-size", text, INT64_MAX,
                            &options->recording.function_txt_bytes, error);
}

static sj_status parse_threads(const sj_option *option, void *values, const char *text,
                               sj_error *error)
{
    sj_record_values *options = values;
    (void)option;
    uint64_t number = 0;
    SJ_TRY(sj_option_number("--threads", text, SJ_ARENA_MAX_THREADS, &number, error));
    options->recording.max_threads = (uint32_t)number;
    return SJ_OK;
}

static sj_status parse_output(const sj_option *option, void *values, const char *text,
                              sj_error *error)
{
    sj_record_values *options = values;
    (void)option;
    if (strlen(text) >= sizeof(options->output)) {
        return sj_fail(error, SJ_ELIMIT, "the path of --output is too long");
    }
    options->has_output = true;
    snprintf(options->output, sizeof(options->output), "%s", text);
    return SJ_OK;
}

static sj_status parse_map(const sj_option *option, void *values, const char *text, sj_error *error)
{
    sj_record_values *options = values;
    (void)option;
    options->map_file = text;
    return access(text, R_OK) == 0 ? SJ_OK
                                   : sj_fail(error, SJ_ENOTFOUND, "%s: %s", text, strerror(errno));
}

const sj_option sj_attach_options[] = {
    {.name = "for",
     .argument = "TIME",
     .kind = SJ_ARG_TIME,
     .offset = offsetof(sj_record_values, recording.duration_ms),
     .least = 1,
     .help = "detach after this time (30s, 5m, 1500ms)"},
    SJ_POLICY_OPTION("profile", NULL,
                     "totals per call path only; the report is printed at the end"),
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .kind = SJ_ARG_PARSED,
     .parse = parse_output,
     .help = "database file; an existing one gets another session\n"
             "(default sojourn-NAME-TIME.db)"},
    {.kind = SJ_ARG_TABLE, .table = sj_record_options, .is_hidden = true},
    {0}};

const sj_option sj_record_options[] = {
    {.help = "Destination:"},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .kind = SJ_ARG_PARSED,
     .parse = parse_output,
     .is_common = true,
     .help = "database file; an existing one gets another session\n"
             "(default sojourn-PROGRAM-TIME.db)"},
    {.name = "collector",
     .argument = "URL",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sj_record_values, collector),
     .help = "send to a server, such as tcp://collector:7654"},
    {.name = "wait",
     .argument = "TIME",
     .kind = SJ_ARG_TIME,
     .offset = offsetof(sj_record_values, wait_ms),
     .most = MAX_WAIT_MS,
     .help = "at the end, wait for the server (default 10s), or for a database that\n"
             "stores nothing more (1m)"},
    {.name = "spool",
     .argument = "DIR",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sj_record_values, recording.spool_root),
     .help = "folder for data that the server has not acknowledged yet"},
    {.name = "name",
     .argument = "TEXT",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sj_record_values, recording.name),
     .is_common = true,
     .help = "label of the session"},
    {.name = "summary",
     .argument = "FILE",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sj_record_values, summary_path),
     .help = "write the closing summary as JSON (/dev/fd/3 works, too)"},
    {.name = "function-txt",
     .argument = "DIR",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sj_record_values, recording.function_txt),
     .help = "write a line for each entry and exit to DIR/function.txt while it runs"},
    {.name = "function-txt-size",
     .argument = "BYTES",
     .kind = SJ_ARG_PARSED,
     .parse = parse_function_txt_size,
     .help = "begin another file at this size (k, M or G; default 64M, 0: never)"},
    {.name = "function-txt-files",
     .argument = "N",
     .kind = SJ_ARG_NUMBER,
     .offset = offsetof(sj_record_values, recording.function_txt_files),
     .least = 1,
     .most = MAX_FUNCTION_TXT_FILES,
     .help = "keep the latest N files (default 4)"},
    {.name = "quiet",
     .letter = 'q',
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(sj_record_values, quiet),
     .help = "print errors and losses only"},
    {.help = "Limits and resources:"},
    {.name = "max-bytes",
     .argument = "BYTES",
     .kind = SJ_ARG_PARSED,
     .parse = parse_max_bytes,
     .help = "unhook everything at this size (k, M or G; default 4G, 0: no limit)"},
    {.name = "threads",
     .argument = "N",
     .kind = SJ_ARG_PARSED,
     .parse = parse_threads,
     .help = "threads of a process that can be recorded at once (default 512)"},
    {.name = "children",
     .argument = "WHICH",
     .kind = SJ_ARG_PARSED,
     .parse = parse_children,
     .help = "all: also forked processes and the programs that they run (default);\n"
             "forked: only forked processes; none. The program's own exec is always recorded"},
    {.name = "until-all-end",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(sj_record_values, recording.until_all_end),
     .help = "record until all processes of the program have ended, such as a server that\n"
             "starts in the background; Ctrl-C then ends the recording"},
    {.name = "map",
     .argument = "FILE",
     .kind = SJ_ARG_PARSED,
     .parse = parse_map,
     .help = "take functions from a linker map or from `nm -S`"},
    {.name = "agent",
     .argument = "FILE",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sj_record_values, recording.agent_path),
     .help = "the agent to load"},
    {.name = "no-plan-cache",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(sj_record_values, recording.no_plan_cache),
     .help = "plan the hooks anew instead of using cached plans"},
    {.name = "no-code-samples",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(sj_record_values, recording.no_code_samples),
     .help = "do not sample which files' code runs; the summary then does not say where\n"
             "time passes that no recorded call explains"},
    {.name = "plan-wait",
     .argument = "TIME",
     .kind = SJ_ARG_TIME,
     .offset = offsetof(sj_record_values, recording.plan_wait_ms),
     .least = 1,
     .most = MAX_PLAN_WAIT_MS,
     .help = "the longest time that a process waits for plans of its modules (default 20s);\n"
             "modules without a plan are hooked later"},
    {.kind = SJ_ARG_TABLE, .table = sj_policy_options},
    {0}};
