#include "agent/control/program.h"
#include "agent/control/selection.h"
#include "agent/planner/planner.h"
#include "collector-server/cli/commands.h"
#include "collector-server/export/json_text.h"

#include <getopt.h>
#include <limits.h>
#include <string.h>

enum { REASONS = 32 };

typedef struct functions_options {
    sj_selection selection;
    bool json;
    bool all;
} functions_options;

typedef struct function_totals {
    uint64_t functions;
    uint64_t hookable;
    uint64_t techniques[REASONS];
    uint64_t skips[REASONS];
} function_totals;

/* Cold parts are no functions: they count with the function that they belong to. */
static void count_function(function_totals *totals, const sj_plan_function *function)
{
    if (function->skip == SJ_SKIP_COLD_PART) {
        return;
    }
    totals->functions++;
    totals->hookable += sj_plan_is_hooked(function);
    totals->techniques[function->technique % REASONS]++;
    if (!sj_plan_is_hooked(function)) {
        totals->skips[function->skip % REASONS]++;
    }
}

/* is_listed: functions that are no functions of their own, or that nobody asked for, are listed on
 * request only. */
static bool is_listed(const functions_options *options, const sj_plan_function *function)
{
    return options->all ||
           (function->skip != SJ_SKIP_FILTERED && function->skip != SJ_SKIP_COLD_PART &&
            function->skip != SJ_SKIP_RUNTIME_SUPPORT);
}

static void print_row(const sj_plan_header *plan, const sj_plan_function *function)
{
    const char *name = sj_plan_string(plan, function->name);
    const bool is_hookable = sj_plan_is_hooked(function);
    printf("%#12llx %8u  %-10s  %s", (unsigned long long)function->offset, function->size,
           is_hookable ? sj_technique_text(function->technique) : "-",
           name[0] != '\0' ? name : "(no name)");
    if (!is_hookable) {
        printf("  [%s]", sj_skip_text(function->skip));
    }
    printf("\n");
}

static void print_json_row(const sj_plan_header *plan, const sj_plan_function *function,
                           bool is_first)
{
    printf("%s\n    {\"offset\": %llu, \"size\": %u, \"name\": ", is_first ? "" : ",",
           (unsigned long long)function->offset, function->size);
    sj_json_text(stdout, sj_plan_string(plan, function->name));
    printf(", \"hookable\": %s, \"technique\": ", sj_plan_is_hooked(function) ? "true" : "false");
    sj_json_text(stdout, sj_technique_text(function->technique));
    printf(", \"reason\": ");
    sj_json_text(stdout, sj_plan_is_hooked(function) ? "" : sj_skip_text(function->skip));
    printf("}");
}

static void print_totals(const function_totals *totals)
{
    printf("\n%llu functions, %llu hookable (%.2f %%)\n", (unsigned long long)totals->functions,
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
            printf("%10llu  left out: %s\n", (unsigned long long)totals->skips[i],
                   sj_skip_text((sj_skip)i));
        }
    }
}

static void print_json_totals(const function_totals *totals)
{
    const char *separator = "";
    printf("\n  ],\n  \"totals\": {\"functions\": %llu, \"hookable\": %llu, \"left_out\": {",
           (unsigned long long)totals->functions, (unsigned long long)totals->hookable);
    for (int i = 1; i < REASONS; i++) {
        if (totals->skips[i] != 0) {
            printf("%s", separator);
            sj_json_text(stdout, sj_skip_text((sj_skip)i));
            printf(": %llu", (unsigned long long)totals->skips[i]);
            separator = ", ";
        }
    }
    printf("}}\n}\n");
}

static void print_plan(const functions_options *options, const char *path,
                       const sj_plan_header *plan)
{
    const sj_plan_function *functions = sj_plan_functions(plan);
    function_totals totals = {0};
    bool is_first = true;
    if (options->json) {
        printf("{\n  \"path\": ");
        sj_json_text(stdout, path);
        printf(",\n  \"functions\": [");
    } else {
        printf("%12s %8s  %-10s  %s\n", "offset", "bytes", "technique", "function");
    }
    for (uint32_t i = 0; i < plan->function_count; i++) {
        count_function(&totals, &functions[i]);
        if (!is_listed(options, &functions[i])) {
            continue;
        }
        if (options->json) {
            print_json_row(plan, &functions[i], is_first);
        } else {
            print_row(plan, &functions[i]);
        }
        is_first = false;
    }
    if (options->json) {
        print_json_totals(&totals);
    } else {
        print_totals(&totals);
    }
}

static int list_functions(const functions_options *options, const char *name)
{
    char path[PATH_MAX];
    sj_error error = {0};
    sj_plan plan = {0};
    if (sj_program_resolve(name, path, sizeof(path), &error) != SJ_OK) {
        return sj_command_error(&sj_command_functions, SJ_EXIT_NOT_FOUND, "%s", error.text);
    }
    const sj_planner_options planner = {.module_path = path,
                                        .map_file = options->selection.map_file,
                                        .wanted = sj_selection_wants_function,
                                        .context = (void *)(uintptr_t)&options->selection,
                                        .library_calls = options->selection.library_calls};
    const sj_status status = sj_plan_make(&planner, &plan, &error);
    if (status != SJ_OK) {
        return sj_command_error(&sj_command_functions,
                                status == SJ_ENOTFOUND ? SJ_EXIT_NOT_FOUND : SJ_EXIT_FAILED,
                                "%s: %s", path, error.text);
    }
    print_plan(options, path, plan.header);
    sj_plan_free(&plan);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        return sj_command_error(&sj_command_functions, SJ_EXIT_FAILED,
                                "cannot write the list to standard output");
    }
    return SJ_EXIT_OK;
}

static int run_functions(int argc, char **argv)
{
    static const struct option long_options[] = {{"json", no_argument, NULL, 'j'},
                                                 {"map", required_argument, NULL, 'm'},
                                                 {"all", no_argument, NULL, 'a'},
                                                 {"library-calls", no_argument, NULL, 'l'},
                                                 {"function", required_argument, NULL, 'f'},
                                                 {"exclude", required_argument, NULL, 'x'},
                                                 {"help", no_argument, NULL, 'h'},
                                                 {NULL, 0, NULL, 0}};
    functions_options options = {0};
    sj_selection *selection = &options.selection;
    sj_error error = {0};
    sj_status status = SJ_OK;
    int option;
    optind = 1;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        switch (option) {
        case 'j':
            options.json = true;
            break;
        case 'm':
            selection->map_file = optarg;
            break;
        case 'a':
            options.all = true;
            break;
        case 'l':
            selection->library_calls = true;
            break;
        case 'f':
            status =
                sj_selection_add(selection->functions, &selection->function_count, optarg, &error);
            break;
        case 'x':
            status =
                sj_selection_add(selection->excluded, &selection->excluded_count, optarg, &error);
            break;
        case 'h':
            return sj_command_help(&sj_command_functions);
        default:
            return sj_command_usage_error(
                &sj_command_functions, option == ':' ? "%s needs a value" : "there is no option %s",
                argv[optind - 1]);
        }
        if (status != SJ_OK) {
            return sj_command_usage_error(&sj_command_functions, "%s", error.text);
        }
    }
    if (argc - optind != 1) {
        return sj_command_usage_error(&sj_command_functions, "name one program or library");
    }
    return list_functions(&options, argv[optind]);
}

const sj_command sj_command_functions = {
    .name = "functions",
    .summary = "list the functions of a program: which can be recorded, how, and why not",
    .usage = "sojourn functions [OPTIONS] PROGRAM",
    .help = "PROGRAM is a path, a name in PATH, or a shared library.\n\n"
            "Options:\n"
            "  --all             also cold parts, run-time support and what the filters leave out\n"
            "  --function GLOB   only functions whose name matches (may be repeated)\n"
            "  --exclude GLOB    without functions whose name matches (may be repeated)\n"
            "  --library-calls   also the functions of libraries that it calls (FILE!NAME)\n"
            "  --map FILE        take functions from a linker map or from `nm -S`\n"
            "  --json            as JSON\n"
            "  --help            this text\n\n"
            "Examples:\n"
            "  sojourn functions ./app\n"
            "  sojourn functions --function 'net_*' ./app\n"
            "  sojourn functions --json /usr/bin/git | jq .totals\n",
    .run = run_functions,
};
