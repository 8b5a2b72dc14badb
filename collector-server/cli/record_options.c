#include "collector-server/cli/record_options.h"

#include "agent/abi/arena.h"
#include "collector-server/cli/policy_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_WAIT_MS = 86400 * 1000 };

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

#define DRAFT offsetof(sj_record_values, draft)

const sj_option sj_attach_options[] = {
    {.name = "for",
     .argument = "TIME",
     .kind = SJ_ARG_TIME,
     .offset = offsetof(sj_record_values, recording.duration_ms),
     .least = 1,
     .help = "detach after this time (30s, 5m, 1500ms)"},
    {.name = "profile",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "totals per call path only; the report is printed at the end"},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .kind = SJ_ARG_PARSED,
     .parse = parse_output,
     .help = "database file; a session is added when it exists\n"
             "(default sojourn-NAME-TIME.db)"},
    /* As those of `sojourn record`, whose --help shows them. */
    /* clang-format off */
    {.name = "collector", .argument = "VALUE", .kind = SJ_ARG_TEXT, .offset = offsetof(sj_record_values, collector)},
    {.name = "wait",
     .argument = "TIME",
     .kind = SJ_ARG_TIME,
     .offset = offsetof(sj_record_values, wait_ms),
     .most = MAX_WAIT_MS},
    {.name = "spool", .argument = "VALUE", .kind = SJ_ARG_TEXT, .offset = offsetof(sj_record_values, recording.spool_root)},
    {.name = "name", .argument = "VALUE", .kind = SJ_ARG_TEXT, .offset = offsetof(sj_record_values, recording.name)},
    {.name = "summary", .argument = "VALUE", .kind = SJ_ARG_TEXT, .offset = offsetof(sj_record_values, summary_path)},
    {.name = "quiet", .letter = 'q', .kind = SJ_ARG_FLAG, .offset = offsetof(sj_record_values, quiet)},
    {.name = "map", .argument = "VALUE", .kind = SJ_ARG_PARSED, .parse = parse_map},
    {.name = "max-bytes", .argument = "VALUE", .kind = SJ_ARG_PARSED, .parse = parse_max_bytes},
    {.name = "threads", .argument = "VALUE", .kind = SJ_ARG_PARSED, .parse = parse_threads},
    {.name = "children", .argument = "VALUE", .kind = SJ_ARG_PARSED, .parse = parse_children},
    {.name = "agent", .argument = "VALUE", .kind = SJ_ARG_TEXT, .offset = offsetof(sj_record_values, recording.agent_path)},
    {.name = "no-plan-cache", .kind = SJ_ARG_FLAG, .offset = offsetof(sj_record_values, recording.no_plan_cache)},
    {.name = "policy", .argument = "VALUE", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse, .is_first = true},
    {.name = "libs", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "library-calls", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "module", .argument = "VALUE", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "function", .argument = "VALUE", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "exclude", .argument = "VALUE", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "source", .argument = "VALUE", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "exclude-source", .argument = "VALUE", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "allow-unmatched", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "thread", .argument = "VALUE", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "budget", .argument = "VALUE", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "mode", .argument = "VALUE", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "flight", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "depth", .argument = "VALUE", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "minimum", .argument = "VALUE", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "buffer", .argument = "VALUE", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "when-full", .argument = "VALUE", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "block-ms", .argument = "VALUE", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "java-class", .argument = "VALUE", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "java-system", .argument = "VALUE", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "objc", .argument = "VALUE", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "receivers", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "class", .argument = "VALUE", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "selector", .argument = "VALUE", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "subclasses-of", .argument = "VALUE", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "no-system-classes", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    {.name = "value", .argument = "VALUE", .kind = SJ_ARG_PARSED, .offset = DRAFT, .parse = sj_policy_option_parse},
    SJ_POLICY_OPTION(DRAFT, "zombies", "VALUE", NULL),
    /* clang-format on */
    {0}};

const sj_option sj_record_options[] = {
    {.help = "Where to:"},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .kind = SJ_ARG_PARSED,
     .parse = parse_output,
     .help = "database file; a session is added when it exists\n"
             "(default sojourn-PROGRAM-TIME.db)"},
    {.name = "collector",
     .argument = "URL",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sj_record_values, collector),
     .help = "send to a server, as tcp://lab:7654"},
    {.name = "wait",
     .argument = "TIME",
     .kind = SJ_ARG_TIME,
     .offset = offsetof(sj_record_values, wait_ms),
     .most = MAX_WAIT_MS,
     .help = "wait so long for the server at the end (default 10s)"},
    {.name = "spool",
     .argument = "DIR",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sj_record_values, recording.spool_root),
     .help = "keep what is not yet taken there"},
    {.name = "name",
     .argument = "TEXT",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sj_record_values, recording.name),
     .help = "label of the session"},
    {.name = "summary",
     .argument = "FILE",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sj_record_values, summary_path),
     .help = "write the closing summary as JSON (/dev/fd/3 works, too)"},
    {.name = "quiet",
     .letter = 'q',
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(sj_record_values, quiet),
     .help = "print errors and losses only"},
    {.help = "What:"},
    {.name = "libs",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "system libraries, too"},
    {.name = "module",
     .argument = "GLOB",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "only modules whose path or file name matches (repeatable)"},
    {.name = "function",
     .argument = "GLOB",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "only functions whose name matches (repeatable)"},
    {.name = "exclude",
     .argument = "GLOB",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "without functions whose name matches (repeatable)"},
    {.name = "source",
     .argument = "GLOB",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "only functions of matching source files, where the program says\n"
             "which they are (repeatable)"},
    {.name = "exclude-source",
     .argument = "GLOB",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "without functions of matching source files (repeatable)"},
    {.name = "allow-unmatched",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "names that match nothing are reported, not refused: they may belong to\n"
             "libraries that are loaded later"},
    {.name = "map",
     .argument = "FILE",
     .kind = SJ_ARG_PARSED,
     .parse = parse_map,
     .help = "take functions from a linker map or from `nm -S`"},
    {.help = "How:"},
    {.name = "policy",
     .argument = "FILE|NAME",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .is_first = true,
     .help = "a policy, or a shipped one: default, everything, jank, coverage,\n"
             "zombies, zombies-field;\n"
             "flags change it"},
    {.name = "mode",
     .argument = "MODE",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "trace: every call (default); profile: totals per call path; flight:\n"
             "the last seconds, when a trigger asks for them"},
    {.name = "profile",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "--mode profile"},
    {.name = "flight",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "--mode flight"},
    {.name = "budget",
     .argument = "PERCENT",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "add at most so much CPU time, leaving out what is least informative"},
    {.name = "depth",
     .argument = "N",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "no calls deeper than that"},
    {.name = "minimum",
     .argument = "TIME",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "count calls shorter than, say, 50us, but do not keep them"},
    {.name = "value",
     .argument = "RULE",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "record values of a function's calls (repeatable), in source order,\n"
             "'open_it(path:str, flags:hex) -> int', or one by its number in its class\n"
             "of registers, 'malloc_it(1:ulong)', or the result, 'find(result:string)'"},
    {.name = "thread",
     .argument = "NAME",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "only threads whose name matches (repeatable)"},
    {.name = "max-bytes",
     .argument = "BYTES",
     .kind = SJ_ARG_PARSED,
     .parse = parse_max_bytes,
     .help = "with k, M or G: stop recording at this size (default 4G, 0: no limit)"},
    {.name = "buffer",
     .argument = "N",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "chunks of 64 KiB per thread, 1 to 64 (default 64)"},
    {.name = "when-full",
     .argument = "WHAT",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "block: wait for room, then drop (default); drop: at once"},
    {.name = "block-ms",
     .argument = "N",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "wait so long at most (default 2000)"},
    {.name = "threads",
     .argument = "N",
     .kind = SJ_ARG_PARSED,
     .parse = parse_threads,
     .help = "threads of a process that can be recorded at once (default 512)"},
    {.name = "children",
     .argument = "WHICH",
     .kind = SJ_ARG_PARSED,
     .parse = parse_children,
     .help = "all: forked ones and programs run by them, too (default);\n"
             "forked: only forked ones; none"},
    {.name = "agent",
     .argument = "FILE",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sj_record_values, recording.agent_path),
     .help = "the agent to load"},
    {.name = "java-class",
     .argument = "GLOB",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "of Java only classes whose name matches, as 'com.acme.*' (repeatable)"},
    {.name = "java-system",
     .argument = "GLOB",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "Java classes that are recorded with --libs only, in place of java.*,\n"
             "javax.*, jdk.*, sun.* and com.sun.* (repeatable)"},
    {.name = "objc",
     .argument = "HOW",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "Objective-C: methods (default: their code is patched) or\n"
             "dispatch (where messages are looked up: the receiver's class)"},
    {.name = "receivers",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "the receiver's class with patched methods, too"},
    {.name = "class",
     .argument = "GLOB",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "of Objective-C only classes whose name matches (repeatable)"},
    {.name = "selector",
     .argument = "GLOB",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "only messages whose selector matches (repeatable)"},
    {.name = "subclasses-of",
     .argument = "GLOB",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "only such classes and what descends from them (repeatable)"},
    {.name = "no-system-classes",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "without the classes that system libraries define"},
    {.name = "library-calls",
     .kind = SJ_ARG_PARSED,
     .offset = DRAFT,
     .parse = sj_policy_option_parse,
     .help = "also calls into libraries, as FILE!NAME: from the program and the\n"
             "libraries that are recorded, through their import tables"},
    SJ_POLICY_OPTION(DRAFT, "zombies", "WHAT",
                     "heap: report uses of freed memory, overflows and wrong frees of\n"
                     "blocks of malloc"),
    {.name = "no-plan-cache",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(sj_record_values, recording.no_plan_cache),
     .help = "look at the program's code afresh"},
    {0}};
