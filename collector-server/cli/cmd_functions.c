#include "agent/abi/skip_text.h"
#include "agent/launch/program.h"
#include "agent/objfile/map_globals.h"
#include "agent/planner/planner.h"
#include "agent/planner/text_coverage.h"
#include "agent/policy/selection.h"
#include "agent/registry/module_plan.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/json_output.h"
#include "collector-server/cli/terminal.h"
#include "collector-server/cli/work_progress.h"
#include "collector-server/export/json_text.h"
#include "proto/base/units.h"

#include <limits.h>
#include <string.h>

enum { REASONS = 32 };

typedef struct functions_options {
    sj_selection selection;
    bool json;
    bool all;
    bool globals;
} functions_options;

/* The functions of one file. */
typedef struct function_list {
    const functions_options *options;
    const sj_plan_header *plan; /* NULL: not made yet */
    sj_function_keys keys;
} function_list;

typedef struct function_totals {
    uint64_t functions;
    uint64_t hookable;
    uint64_t unnamed;
    uint64_t techniques[REASONS];
    uint64_t skips[REASONS];
} function_totals;

/* Skips a cold part: it is a piece of another function, from which the compiler split it. */
static void count_function(function_totals *totals, const sj_plan_header *plan,
                           const sj_plan_function *function)
{
    if (function->skip == SJ_SKIP_COLD_PART) {
        return;
    }
    totals->functions++;
    totals->unnamed +=
        sj_plan_is_hooked(function) && sj_plan_string(plan, function->name)[0] == '\0';
    totals->hookable += sj_plan_is_hooked(function);
    totals->techniques[function->technique % REASONS]++;
    if (!sj_plan_is_hooked(function)) {
        totals->skips[function->skip % REASONS]++;
    }
}

static bool is_listed(const functions_options *options, const sj_plan_function *function)
{
    return options->all ||
           (function->skip != SJ_SKIP_FILTERED && function->skip != SJ_SKIP_COLD_PART &&
            function->skip != SJ_SKIP_RUNTIME_SUPPORT);
}

/* Returns the name of a function, or its place, which filters take as well. */
static const char *name_of(const function_list *list, const sj_plan_function *function,
                           char place[SJ_FUNCTION_PLACE_BYTES + 32])
{
    const char *name = sj_plan_string(list->plan, function->name);
    snprintf(place, SJ_FUNCTION_PLACE_BYTES + 32, "%s+0x%llx", list->keys.module,
             (unsigned long long)function->offset);
    return name[0] != '\0' ? name : place;
}

static void print_row(const function_list *list, const sj_plan_function *function)
{
    char place[SJ_FUNCTION_PLACE_BYTES + 32];
    const bool is_hookable = sj_plan_is_hooked(function);
    printf("%#12llx %8u  %-10s  %s", (unsigned long long)function->offset, function->size,
           is_hookable ? sj_technique_text(function->technique) : "-",
           name_of(list, function, place));
    if (!is_hookable) {
        printf("  [%s]", sj_skip_text(function->skip));
    }
    printf("\n");
}

static void print_json_row(function_list *list, const sj_plan_function *function, bool is_first)
{
    const sj_plan_header *plan = list->plan;
    printf("%s\n    {\"offset\": %llu, \"size\": %u, \"name\": ", is_first ? "" : ",",
           (unsigned long long)function->offset, function->size);
    sj_json_text(stdout, sj_plan_string(plan, function->name));
    printf(", \"place\": ");
    const char *key = sj_function_key(&list->keys, "", function->offset);
    const char *place = strrchr(key, SJ_FUNCTION_KEY_PLACE);
    sj_json_text(stdout, place != NULL ? place + 1 : "");
    printf(", \"hookable\": %s, \"technique\": ", sj_plan_is_hooked(function) ? "true" : "false");
    sj_json_text(stdout, sj_technique_text(function->technique));
    printf(", \"reason\": ");
    sj_json_text(stdout, sj_plan_is_hooked(function) ? "" : sj_skip_text(function->skip));
    printf("}");
}

static void print_coverage(sj_text_coverage coverage)
{
    printf("%llu of %llu bytes of code (%.1f %%) are in no known function%s\n",
           (unsigned long long)coverage.unknown_bytes, (unsigned long long)coverage.text_bytes,
           coverage.text_bytes != 0
               ? 100.0 * (double)coverage.unknown_bytes / (double)coverage.text_bytes
               : 0,
           sj_text_coverage_is_poor(coverage)
               ? ": its debug package, or --map with its linker map, names them"
               : "");
}

/* Says how functions without a name are selected, and how a policy is bound to this build. */
static void print_places(const function_list *list, uint64_t unnamed)
{
    if (unnamed == 0 || list->keys.module[0] == '\0') {
        return;
    }
    printf("%s without a name: --function and --exclude take MODULE+0xOFFSET and "
           "MODULE+0xFROM-0xTO\n",
           SJ_COUNTED(unnamed, "function"));
    if (list->keys.build_id[0] != '\0') {
        printf("in a policy that you keep, add the build: @%s\n", list->keys.build_id);
    }
}

static void print_totals(const function_totals *totals)
{
    printf("\n%s, %llu hookable (%.2f %%)\n", SJ_COUNTED(totals->functions, "function"),
           (unsigned long long)totals->hookable,
           totals->functions != 0 ? 100.0 * (double)totals->hookable / (double)totals->functions
                                  : 0);
    for (int i = 1; i < REASONS; i++) {
        if (totals->techniques[i] != 0) {
            printf("%10llu  %s\n", (unsigned long long)totals->techniques[i],
                   sj_technique_text((sj_technique)i));
        }
    }
    for (int i = 1; i < REASONS; i++) {
        if (totals->skips[i] != 0) {
            printf("%10llu  not recorded: %s\n", (unsigned long long)totals->skips[i],
                   sj_skip_text(i));
        }
    }
}

static void print_json_totals(const function_totals *totals, sj_text_coverage coverage)
{
    const char *separator = "";
    printf("\n  ],\n  \"totals\": {\"functions\": %llu, \"hookable\": %llu, \"left_out\": {",
           (unsigned long long)totals->functions, (unsigned long long)totals->hookable);
    for (int i = 1; i < REASONS; i++) {
        if (totals->skips[i] != 0) {
            printf("%s", separator);
            sj_json_text(stdout, sj_skip_text(i));
            printf(": %llu", (unsigned long long)totals->skips[i]);
            separator = ", ";
        }
    }
    printf("}, \"text_bytes\": %llu, \"unknown_text_bytes\": %llu}\n}" SJ_JSON_ROWS_END,
           (unsigned long long)coverage.text_bytes, (unsigned long long)coverage.unknown_bytes);
}

static void print_plan(function_list *list, const char *path)
{
    const functions_options *options = list->options;
    const sj_plan_header *plan = list->plan;
    const sj_plan_function *functions = sj_plan_functions(plan);
    function_totals totals = {0};
    bool is_first = true;
    if (options->json) {
        printf(SJ_JSON_ROWS_BEGIN "{\n  \"path\": ");
        sj_json_text(stdout, path);
        printf(",\n  \"functions\": [");
    } else {
        printf("%12s %8s  %-10s  %s\n", "offset", "bytes", "technique", "function");
    }
    for (uint32_t i = 0; i < plan->function_count; i++) {
        count_function(&totals, plan, &functions[i]);
        if (!is_listed(options, &functions[i])) {
            continue;
        }
        if (options->json) {
            print_json_row(list, &functions[i], is_first);
        } else {
            print_row(list, &functions[i]);
        }
        is_first = false;
    }
    if (options->json) {
        print_json_totals(&totals, sj_text_coverage_of(plan));
    } else {
        print_totals(&totals);
        print_coverage(sj_text_coverage_of(plan));
        print_places(list, totals.unnamed);
    }
}

/* Prints the symbols of data in the program's map file. The caller has made a plan with this map
 * before, which fails if the map belongs to another program. */
static int list_globals(const functions_options *options, const char *path)
{
    sj_map_globals globals;
    sj_error error = {0};
    const sj_status status =
        sj_map_globals_read(path, options->selection.map_file, &globals, &error);
    if (status != SJ_OK) {
        return sj_command_error(&sj_command_functions, sj_exit_code(status), "%s: %s", path,
                                error.text);
    }
    if (options->json) {
        fputs(SJ_JSON_ROWS_BEGIN, stdout);
    } else {
        printf("%12s %8s  %s\n", "offset", "bytes", "global");
    }
    for (size_t i = 0; i < globals.symbols.count; i++) {
        const sj_symbol *symbol = &globals.symbols.items[i];
        if (options->json) {
            printf("%s\n    {\"offset\": %llu, \"size\": %llu, \"name\": ", i == 0 ? "" : ",",
                   (unsigned long long)symbol->address, (unsigned long long)symbol->size);
            sj_json_text(stdout, symbol->name);
            printf("}");
        } else {
            printf("%#12llx %8llu  %s\n", (unsigned long long)symbol->address,
                   (unsigned long long)symbol->size, symbol->name);
        }
    }
    fputs(options->json ? SJ_JSON_ROWS_END : "", stdout);
    sj_map_globals_deinit(&globals);
    return SJ_EXIT_OK;
}

static bool is_wanted(void *context, const char *name, uint64_t offset, uint32_t size_bytes)
{
    function_list *list = context;
    const bool is_import = strchr(name, '!') != NULL;
    return sj_selection_wants_function(
        (void *)(uintptr_t)&list->options->selection,
        is_import ? name : sj_function_key(&list->keys, name, offset), offset, size_bytes);
}

static int list_functions(const functions_options *options, const char *name)
{
    char path[PATH_MAX];
    sj_error error = {0};
    sj_plan plan = {0};
    if (sj_program_resolve(name, path, sizeof(path), &error) != SJ_OK) {
        return sj_command_error(&sj_command_functions, SJ_EXIT_NOT_FOUND, "%s", error.text);
    }
    function_list list = {.options = options};
    sj_module_keys_init(&list.keys, path);
    const sj_planner_options planner = {.module_path = path,
                                        .map_file = options->selection.map_file,
                                        .wanted = is_wanted,
                                        .context = &list,
                                        .library_calls = options->selection.library_calls,
                                        .threads = sj_plan_threads()};
    sj_work_progress_start();
    const sj_status status = sj_plan_make(&planner, &plan, &error);
    sj_work_progress_stop();
    if (status != SJ_OK) {
        return sj_command_error(&sj_command_functions, sj_exit_code(status), "%s: %s", path,
                                error.text);
    }
    int code = SJ_EXIT_OK;
    sj_terminal terminal;
    sj_terminal_open(&terminal);
    if (!options->json) {
        sj_terminal_page(&terminal);
    }
    if (options->globals) {
        code = list_globals(options, path);
    } else {
        list.plan = plan.header;
        print_plan(&list, path);
    }
    sj_plan_free(&plan);
    if (!sj_terminal_close(&terminal)) {
        return sj_command_error(&sj_command_functions, SJ_EXIT_FAILED,
                                "cannot write the list to standard output");
    }
    return code;
}

static sj_status parse_function(const sj_option *option, void *values, const char *text,
                                sj_error *error)
{
    (void)option;
    sj_selection *selection = &((functions_options *)values)->selection;
    return sj_selection_add(selection->functions, &selection->function_count, text, error);
}

static sj_status parse_exclude(const sj_option *option, void *values, const char *text,
                               sj_error *error)
{
    (void)option;
    sj_selection *selection = &((functions_options *)values)->selection;
    return sj_selection_add(selection->excluded, &selection->excluded_count, text, error);
}

static int run_functions(int argc, char **argv)
{
    functions_options options = {0};
    int first = 0;
    int code = sj_options_parse(&sj_command_functions, argc, argv, &options, &first);
    if (code < 0 && argc - first != 1) {
        code = sj_command_usage_error(&sj_command_functions, "name one program or library");
    } else if (code < 0 && options.globals && options.selection.map_file == NULL) {
        code = sj_command_usage_error(&sj_command_functions, "--globals are those of a --map FILE");
    } else if (code < 0) {
        code = list_functions(&options, argv[first]);
    }
    sj_selection_free(&options.selection);
    return code;
}

static const sj_option functions_table[] = {
    {.name = "all",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(functions_options, all),
     .help = "also cold parts, run-time support and what the filters leave out"},
    {.name = "function",
     .argument = "GLOB",
     .kind = SJ_ARG_PARSED,
     .parse = parse_function,
     .help = "only functions whose name matches, or MODULE+0xOFFSET (repeatable)"},
    {.name = "exclude",
     .argument = "GLOB",
     .kind = SJ_ARG_PARSED,
     .parse = parse_exclude,
     .help = "leave out functions whose name matches, or MODULE+0xOFFSET (repeatable)"},
    {.name = "library-calls",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(functions_options, selection.library_calls),
     .help = "also the functions of libraries that it calls (FILE!NAME)"},
    {.name = "map",
     .argument = "FILE",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(functions_options, selection.map_file),
     .help = "take functions from a linker map or from `nm -S`"},
    {.name = "globals",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(functions_options, globals),
     .help = "list the global variables that the map names, not functions"},
    {.name = "json",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(functions_options, json),
     .help = "as JSON"},
    {0}};

const sj_command sj_command_functions = {
    .name = "functions",
    .summary = "list the functions of a program: which can be recorded, how, and why not",
    .usage = "sojourn functions [OPTIONS] PROGRAM",
    .help = "PROGRAM is a path, a name in PATH, or a shared library.\n",
    .options = functions_table,
    .examples = "Examples:\n"
                "  sojourn functions ./app\n"
                "  sojourn functions --function 'net_*' ./app\n"
                "  sojourn functions --json /usr/bin/git | jq .rows[0].totals\n",
    .run = run_functions,
};
