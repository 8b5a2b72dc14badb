#include "collector-server/cli/policy_options.h"

#include "agent/abi/arena.h"
#include "proto/base/units.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An option that sets a key of the policy to a text, or appends a text to the key's list. */
typedef struct policy_flag {
    const char *option;
    const char *key;
    const char *value; /* the text; NULL: the value of the option */
    bool is_list;
} policy_flag;

static const policy_flag policy_flags[] = {{"module", "modules.include", NULL, true},
                                           {"function", "functions.include", NULL, true},
                                           {"exclude", "functions.exclude", NULL, true},
                                           {"source", "sources.include", NULL, true},
                                           {"exclude-source", "sources.exclude", NULL, true},
                                           {"allow-unmatched", "unmatched", "allow", false},
                                           {"thread", "calls.threads", NULL, true},
                                           {"budget", "budget", NULL, false},
                                           {"mode", "mode", NULL, false},
                                           {"profile", "mode", "profile", false},
                                           {"flight", "mode", "flight", false},
                                           {"minimum", "calls.minimum", NULL, false},
                                           {"resolution", "calls.resolution", NULL, false},
                                           {"clock", "calls.clock", NULL, false},
                                           {"timed", "calls.timed", NULL, true},
                                           {"when-full", "buffer.when_full", NULL, false},
                                           {"objc", "objc.technique", NULL, false},
                                           {"mono-engine", "mono.engine", NULL, false},
                                           {"mono-class", "mono.classes", NULL, true},
                                           {"mono-subclasses-of", "mono.subclasses_of", NULL, true},
                                           {"mono-system", "mono.system", NULL, true},
                                           {"java-class", "java.classes", NULL, true},
                                           {"java-system", "java.system", NULL, true},
                                           {"java-subclasses-of", "java.subclasses_of", NULL, true},
                                           {"java-loader", "java.loaders", NULL, true},
                                           {"java-engine", "java.engine", NULL, false},
                                           {"class", "objc.classes", NULL, true},
                                           {"selector", "objc.selectors", NULL, true},
                                           {"zombie-class", "zombies.objc.classes", NULL, true},
                                           {"subclasses-of", "objc.subclasses_of", NULL, true}};

sj_status sj_option_number(const char *option, const char *text, uint64_t limit, uint64_t *number,
                           sj_error *error)
{
    if (!sj_size_parse(text, number) || *number > limit) {
        return limit >= INT64_MAX
                   ? sj_fail(error, SJ_EINVAL, "%s needs a number, as 500, 64k or 4G, not \"%s\"",
                             option, text)
                   : sj_fail(error, SJ_EINVAL, "%s needs a number up to %llu, not \"%s\"", option,
                             (unsigned long long)limit, text);
    }
    return SJ_OK;
}

/* An option that sets a key of the policy to true or false. */
typedef struct policy_switch {
    const char *option;
    const char *key;
    bool value;
} policy_switch;

static const policy_switch policy_switches[] = {
    {"libs", "modules.system", true},        {"library-calls", "modules.library_calls", true},
    {"receivers", "objc.receivers", true},   {"lines", "mono.lines", true},
    {"lines", "java.lines", true},           {"no-system-classes", "objc.system", false},
    {"thread-memory", "thread_memory", true}};

/* An option that sets a key of the policy to a number. */
typedef struct policy_number {
    const char *option;
    const char *key;
    uint64_t limit;
} policy_number;

static const policy_number policy_numbers[] = {{"depth", "calls.depth", 1000000},
                                               {"buffer", "buffer.chunks", SJ_ARENA_MAX_CHUNKS},
                                               {"block-ms", "buffer.block_ms", 10000}};

static sj_status parse_switch_or_number(sj_policy_draft *draft, const char *name, const char *value,
                                        sj_error *error)
{
    bool is_switch = false; /* no return in the loop: an option may switch several keys */
    for (size_t i = 0; i < sizeof(policy_switches) / sizeof(policy_switches[0]); i++) {
        const policy_switch *row = &policy_switches[i];
        if (strcmp(row->option, name) == 0) {
            is_switch = true;
            SJ_TRY(row->value ? sj_policy_draft_true(draft, row->key)
                              : sj_policy_draft_false(draft, row->key));
        }
    }
    if (is_switch) {
        return SJ_OK;
    }
    for (size_t i = 0; i < sizeof(policy_numbers) / sizeof(policy_numbers[0]); i++) {
        const policy_number *row = &policy_numbers[i];
        if (strcmp(row->option, name) == 0) {
            char option[32];
            uint64_t number = 0;
            snprintf(option, sizeof(option), "--%s", name);
            SJ_TRY(sj_option_number(option, value, row->limit, &number, error));
            return sj_policy_draft_number(draft, row->key, number);
        }
    }
    return sj_fail(error, SJ_EINVAL, "--%s is not an option of a policy", name);
}

/* Prints a note if a value rule names a floating-point argument by its number. Such a number counts
 * only floating-point arguments. A user who counts all parameters in source order would record
 * another register without an error. */
static void explain_float_number(const char *rule)
{
    const char *open = strrchr(rule, '(');
    const char *after = open != NULL ? open + 1 : "";
    const bool is_number = *after >= '1' && *after <= '9' && after[1] == ':';
    if (is_number && (strcmp(after + 2, "double)") == 0 || strcmp(after + 2, "float)") == 0)) {
        fprintf(stderr,
                "sojourn: --value %.200s: of a native function this is floating-point argument %c, "
                "other arguments not counted; to count all, give them in source order, as in "
                "'%.*s(a:int, b:double)'\n",
                rule, *after, (int)(open - rule < 100 ? open - rule : 100), rule);
    }
}

/* Parses the words of --zombies, separated by commas. */
static sj_status parse_zombies(sj_policy_draft *draft, const char *value, sj_error *error)
{
    for (const char *at = value; at != NULL; at = strchr(at, ','), at += at != NULL ? 1 : 0) {
        const size_t bytes = strcspn(at, ",");
        if (bytes == 4 && strncmp(at, "heap", bytes) == 0) {
            SJ_TRY(sj_policy_draft_true(draft, "zombies.heap"));
        } else if (bytes == 4 && strncmp(at, "objc", bytes) == 0) {
            SJ_TRY(sj_policy_draft_true(draft, "zombies.objc.on"));
        } else {
            return sj_fail(error, SJ_EINVAL, "--zombies knows \"heap\" and \"objc\", not \"%.*s\"",
                           (int)(bytes < 64 ? bytes : 64), at);
        }
    }
    return SJ_OK;
}

sj_status sj_policy_option_parse(const sj_option *option, void *values, const char *value,
                                 sj_error *error)
{
    sj_policy_draft *draft = *(sj_policy_draft **)values;
    if (option->is_first) {
        return sj_policy_draft_load(draft, value, error);
    }
    if (strcmp(option->name, "zombies") == 0) {
        return parse_zombies(draft, value, error);
    }
    if (strcmp(option->name, "cpu-time") == 0) {
        return sj_policy_draft_cpu(draft, value, error);
    }
    if (strcmp(option->name, "prototypes") == 0) {
        return sj_policy_draft_prototypes(draft, value, error);
    }
    if (strcmp(option->name, "memory") == 0) {
        return sj_policy_draft_memory(draft, value, error);
    }
    if (strcmp(option->name, "value") == 0) {
        SJ_TRY(sj_policy_draft_value(draft, value, error));
        explain_float_number(value);
        return SJ_OK;
    }
    for (size_t i = 0; i < sizeof(policy_flags) / sizeof(policy_flags[0]); i++) {
        const policy_flag *flag = &policy_flags[i];
        if (strcmp(flag->option, option->name) != 0) {
            continue;
        }
        return flag->is_list ? sj_policy_draft_append(draft, flag->key, value)
                             : sj_policy_draft_text(draft, flag->key,
                                                    flag->value != NULL ? flag->value : value);
    }
    return parse_switch_or_number(draft, option->name, value, error);
}

const sj_option sj_policy_options[] = {
    {.name = "policy",
     .argument = "FILE|NAME",
     .kind = SJ_ARG_PARSED,
     .parse = sj_policy_option_parse,
     .is_first = true,
     .is_common = true,
     .help = "a policy file, or a shipped policy: default, everything, jank, coverage,\n"
             "zombies, zombies-field, minitrace; the other options change it"},
    {.help = "Which calls:"},
    SJ_COMMON_POLICY_OPTION("libs", NULL, "system libraries, too"),
    SJ_POLICY_OPTION("module", "GLOB", "only modules whose path or file name matches (repeatable)"),
    SJ_COMMON_POLICY_OPTION("function", "GLOB",
                            "only functions whose name matches, or MODULE+0xOFFSET, or\n"
                            "MODULE+0xFROM-0xTO (repeatable)"),
    SJ_COMMON_POLICY_OPTION("exclude", "GLOB",
                            "without functions whose name matches, or MODULE+0xOFFSET\n"
                            "(repeatable)"),
    SJ_POLICY_OPTION("source", "GLOB",
                     "only functions of matching source files, if debug data names\n"
                     "them (repeatable)"),
    SJ_POLICY_OPTION("exclude-source", "GLOB",
                     "leave out functions of matching source files (repeatable)"),
    SJ_POLICY_OPTION("allow-unmatched", NULL,
                     "names that match nothing are reported, not refused: they may belong to\n"
                     "libraries that are loaded later"),
    SJ_POLICY_OPTION("thread", "NAME", "only threads whose name matches (repeatable)"),
    SJ_POLICY_OPTION("depth", "N", "leave out calls deeper than N"),
    SJ_POLICY_OPTION("minimum", "TIME",
                     "count calls shorter than this (such as 50us), but do not keep them"),
    {.help = "Times:"},
    SJ_POLICY_OPTION("resolution", "TIME",
                     "keep times in steps of about this (default 10ns), or \"exact\": every\n"
                     "tick of the clock, in two to three times the space"),
    SJ_POLICY_OPTION("clock", "WHEN",
                     "exact: time every call (default); adaptive: count all calls of short,\n"
                     "frequent functions, but time only some of them; estimates are\n"
                     "marked"),
    SJ_POLICY_OPTION("timed", "GLOB",
                     "with --clock adaptive: time every call of matching functions\n"
                     "(repeatable)"),
    SJ_COMMON_POLICY_OPTION("library-calls", NULL,
                            "also calls into libraries, as FILE!NAME: from the program and the\n"
                            "libraries that are recorded, through their import tables"),
    {.help = "Mode:"},
    SJ_POLICY_OPTION("mode", "MODE",
                     "trace: every call (default); profile: totals per call path; flight:\n"
                     "the last seconds before a trigger fires"),
    SJ_COMMON_POLICY_OPTION("profile", NULL,
                            "sums per call path instead of single calls (--mode profile)"),
    SJ_POLICY_OPTION("flight", NULL, "the same as --mode flight"),
    SJ_COMMON_POLICY_OPTION("budget", "PERCENT",
                            "add at most so much CPU time, such as 10%, leaving out what is least\n"
                            "informative"),
    {.help = "Values and costs:"},
    SJ_COMMON_POLICY_OPTION(
        "value", "RULE",
        "record values of a function's calls (repeatable):\n"
        "'open_it': all values, by the function's debug data;\n"
        "'Shop.*': all values, by the types of methods of Java or Mono;\n"
        "'open_it(path:str, flags:hex) -> int': by a signature, in source order;\n"
        "'malloc_it(1:ulong)': one, by its number in its class of registers;\n"
        "'find(result:string)': the result"),
    SJ_POLICY_OPTION("prototypes", "FILE",
                     "a file of signatures, one a line, for --value with a bare name;\n"
                     "'libc': those of the C library, for --library-calls --value '!open'\n"
                     "(repeatable)"),
    SJ_POLICY_OPTION("cpu-time", "FUNCTION",
                     "also measure the CPU time of the calls of matching functions\n"
                     "(repeatable)"),
    SJ_POLICY_OPTION("memory", "FUNCTION",
                     "count what the calls of matching functions allocate and free\n"
                     "(repeatable)"),
    SJ_POLICY_OPTION("thread-memory", NULL,
                     "count what each thread allocates and frees, in all functions"),
    {.help = "Freed memory:"},
    SJ_POLICY_OPTION("zombies", "WHAT",
                     "heap: report uses of freed memory, overflows and wrong frees of\n"
                     "blocks of malloc; objc: messages to freed Objective-C objects;\n"
                     "heap,objc: both"),
    SJ_POLICY_OPTION("zombie-class", "GLOB",
                     "keep freed Objective-C objects of matching classes only\n"
                     "(repeatable; default: all except those of system libraries)"),
    {.help = "Buffers:"},
    SJ_POLICY_OPTION("buffer", "N", "chunks of 64 KiB per thread, 1 to 64 (default 64)"),
    SJ_POLICY_OPTION("when-full", "WHAT",
                     "block: wait for space, then drop (default); drop: at once"),
    SJ_POLICY_OPTION("block-ms", "N", "wait N milliseconds at most (default 2000)"),
    {.help = "Java:"},
    SJ_POLICY_OPTION("java-class", "GLOB",
                     "only Java classes whose name matches, such as 'com.acme.*' (repeatable)"),
    SJ_POLICY_OPTION("java-system", "GLOB",
                     "Java classes that are recorded with --libs only, in place of java.*,\n"
                     "javax.*, jdk.*, sun.*, com.sun.* and android.* (repeatable; --policy\n"
                     "minitrace adds org.*)"),
    SJ_POLICY_OPTION("java-subclasses-of", "GLOB",
                     "only these Java classes and interfaces and their descendants\n"
                     "(repeatable)"),
    SJ_POLICY_OPTION("java-loader", "GLOB",
                     "only classes of these loaders: app, platform, boot or the name of the\n"
                     "loader's class (repeatable)"),
    SJ_POLICY_OPTION("java-engine", "HOW",
                     "Java: rewritten (default: classes get probes) or runtime (the JVM's\n"
                     "own tracing functions are hooked; programs started by record only)"),
    {.help = "Objective-C:"},
    SJ_POLICY_OPTION("objc", "HOW",
                     "Objective-C: methods (default: their code is patched) or\n"
                     "dispatch (where messages are looked up: the receiver's class)"),
    SJ_POLICY_OPTION("receivers", NULL, "record the receiver's class with patched methods, too"),
    SJ_POLICY_OPTION("class", "GLOB", "only Objective-C classes whose name matches (repeatable)"),
    SJ_POLICY_OPTION("selector", "GLOB", "only messages whose selector matches (repeatable)"),
    SJ_POLICY_OPTION("subclasses-of", "GLOB",
                     "only these classes and their descendants (repeatable)"),
    SJ_POLICY_OPTION("no-system-classes", NULL,
                     "leave out the classes that system libraries define"),
    {.help = "Mono:"},
    SJ_POLICY_OPTION("mono-class", "GLOB",
                     "only Mono classes whose name matches, such as 'Acme.Game.*' (repeatable)"),
    SJ_POLICY_OPTION("mono-subclasses-of", "GLOB",
                     "only these Mono classes and their descendants (repeatable)"),
    SJ_POLICY_OPTION("mono-system", "GLOB",
                     "Mono classes that are recorded with --libs or --module only, in place\n"
                     "of System.*, Microsoft.*, Mono.*, Interop and MS.Internal.* of libraries\n"
                     "(repeatable)"),
    SJ_POLICY_OPTION("mono-engine", "HOW",
                     "Mono: callbacks (default: the runtime calls the recorder) or\n"
                     "in_place (compiled code is hooked; other methods are listed)"),
    {.help = "Java and Mono:"},
    SJ_POLICY_OPTION("lines", NULL,
                     "record which lines of methods run: Mono with a symbol file (.mdb,\n"
                     "portable .pdb) beside the assembly (the program's stack traces then\n"
                     "have lines), Java with line numbers in its classes"),
    {0}};
