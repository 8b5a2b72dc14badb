#include "agent/policy/draft.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/policy_set.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int fail(sj_status status, const sj_error *error)
{
    return sj_command_error(&sj_command_policy,
                            status == SJ_ENOTFOUND ? SJ_EXIT_NOT_FOUND : SJ_EXIT_FAILED, "%s",
                            error->text);
}

static sj_status load(const char *name, sj_policy *policy, sj_error *error)
{
    sj_policy_draft *draft = NULL;
    SJ_TRY(sj_policy_draft_new(&draft, error));
    sj_status status = sj_policy_draft_load(draft, name, error);
    if (status == SJ_OK) {
        status = sj_policy_draft_finish(draft, policy, error);
    }
    sj_policy_draft_free(draft);
    return status;
}

static void print_seconds(const char *label, uint64_t ns)
{
    printf("  %-10s %g s\n", label, (double)ns / 1e9);
}

static void print_patterns(const char *label, const sj_pattern *patterns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        printf("  %-10s %s\n", i == 0 ? label : "", patterns[i].text);
    }
}

static void print_filters(const sj_policy *policy)
{
    const sj_selection *selection = &policy->selection;
    print_patterns("modules", selection->modules, selection->module_count);
    print_patterns("without", selection->modules_excluded, selection->modules_excluded_count);
    if (selection->module_count == 0) {
        printf("  %-10s %s\n", "modules", selection->all_libraries ? "all" : "the program's own");
    }
    if (selection->library_calls) {
        printf("  %-10s %s\n", "with", "calls into libraries");
    }
    print_patterns("functions", selection->functions, selection->function_count);
    print_patterns("without", selection->excluded, selection->excluded_count);
    print_patterns("sources", selection->sources, selection->source_count);
    print_patterns("without", selection->sources_excluded, selection->sources_excluded_count);
    print_patterns("classes", selection->objc.classes, selection->objc.class_count);
    print_patterns("without", selection->objc.excluded, selection->objc.excluded_count);
    print_patterns("below", selection->objc.ancestors, selection->objc.ancestor_count);
    print_patterns("selectors", selection->objc.selectors, selection->objc.selector_count);
    if (selection->objc.without_system) {
        printf("  %-10s %s\n", "classes", "not the system's");
    }
    print_patterns("threads", policy->threads, policy->thread_count);
    if (policy->max_depth != 0) {
        printf("  %-10s %" PRIu32 "\n", "depth", policy->max_depth);
    }
    if (policy->minimum_ns != 0) {
        print_seconds("minimum", policy->minimum_ns);
    }
    for (size_t i = 0; i < policy->sampled_count; i++) {
        printf("  %-10s 1 in %" PRIu32 " of %s\n", i == 0 ? "sampled" : "", policy->sampled[i].n,
               policy->sampled[i].function.text);
    }
}

static void print_values(const sj_value_rules *rules)
{
    for (size_t i = 0; rules != NULL && i < rules->count; i++) {
        const sj_value_rule *rule = &rules->items[i];
        const uint32_t position = sj_value_position(rule->descriptor);
        char which[16] = "result";
        if (position != SJ_VALUE_RESULT) {
            snprintf(which, sizeof(which), "%" PRIu32, position);
        }
        printf("  %-10s %s(%s:%s)%s%s\n", i == 0 ? "values" : "", rule->function.text, which,
               sj_value_kind_words[sj_value_kind_of(rule->descriptor)],
               rule->comparison != SJ_VALUE_ALWAYS ? ", some: " : "",
               rule->comparison != SJ_VALUE_ALWAYS ? rule->name : "");
    }
}

static void print_policy(const char *name, const sj_policy *policy)
{
    printf("%s: policy \"%s\", version %" PRIu32 "\n  %-10s %s\n", name, policy->name,
           policy->version, "mode", sj_policy_mode_text(policy->mode));
    if (policy->begins_paused) {
        printf("  %-10s %s\n", "begin", "when a trigger or the program says so");
    }
    if (policy->budget_percent > 0) {
        printf("  %-10s %g %% of the program's CPU time\n", "budget", policy->budget_percent);
    }
    print_filters(policy);
    print_values(policy->selection.values);
    if (policy->mode == SJ_POLICY_PROFILE) {
        print_seconds("interval", policy->profile_interval_ns);
    }
    if (policy->mode == SJ_POLICY_FLIGHT) {
        print_seconds("before", policy->flight_before_ns);
        print_seconds("after", policy->flight_after_ns);
    }
    for (size_t i = 0; i < policy->trigger_count; i++) {
        const sj_trigger *trigger = &policy->triggers[i];
        printf("  %-10s %s %s\n", i == 0 ? "triggers" : "", sj_trigger_event_text(trigger->event),
               trigger->subject.text != NULL ? trigger->subject.text : "");
    }
}

static int check(const char *name)
{
    sj_policy policy;
    sj_error error = {0};
    const sj_status status = load(name, &policy, &error);
    if (status != SJ_OK) {
        return fail(status, &error);
    }
    print_policy(name, &policy);
    sj_policy_free(&policy);
    return SJ_EXIT_OK;
}

static int show(const char *name)
{
    sj_policy policy;
    sj_error error = {0};
    const sj_status status = load(name, &policy, &error);
    if (status != SJ_OK) {
        return fail(status, &error);
    }
    const char *preset = sj_policy_preset(name);
    fputs(preset != NULL ? preset : policy.document, stdout);
    if (preset == NULL) {
        putchar('\n');
    }
    sj_policy_free(&policy);
    return SJ_EXIT_OK;
}

static int list(void)
{
    for (size_t i = 0; sj_policy_presets[i] != NULL; i++) {
        puts(sj_policy_presets[i]);
    }
    return SJ_EXIT_OK;
}

static int run_policy(int argc, char **argv)
{
    static const struct option long_options[] = {{"help", no_argument, NULL, 'h'},
                                                 {NULL, 0, NULL, 0}};
    if (argc > 1 && strcmp(argv[1], "set") == 0) {
        return sj_policy_set_run(argc - 1, argv + 1);
    }
    optind = 1;
    opterr = 0;
    const int option = getopt_long(argc, argv, ":h", long_options, NULL);
    if (option == 'h') {
        return sj_command_help(&sj_command_policy);
    }
    if (option != -1) {
        return sj_command_usage_error(&sj_command_policy, "there is no option %s",
                                      argv[optind - 1]);
    }
    const char *verb = optind < argc ? argv[optind] : "";
    const int values = argc - optind - 1;
    if (strcmp(verb, "list") == 0 && values == 0) {
        return list();
    }
    if (strcmp(verb, "check") == 0 && values == 1) {
        return check(argv[optind + 1]);
    }
    if (strcmp(verb, "show") == 0 && values == 1) {
        const char *name = argv[optind + 1];
        return name[strspn(name, "0123456789")] == '\0' ? sj_policy_show_running(name) : show(name);
    }
    return sj_command_usage_error(
        &sj_command_policy, "say check or show and a file or shipped policy, set and a process, or "
                            "list");
}

const sj_command sj_command_policy = {
    .name = "policy",
    .summary = "check, show, list and set policies: what is recorded, how, at what cost",
    .usage = "sojourn policy check|show FILE|NAME | show PID | set [OPTIONS] PID | list",
    .help =
        "A policy is one JSON document that says what is recorded. check reads one and says\n"
        "what it means, or where in it the first mistake is; show prints the document; list\n"
        "names the shipped ones: default, everything, jank, coverage.\n\n"
        "set changes what is recorded of a process that is being recorded, begun by `sojourn\n"
        "record` or `sojourn attach`, without a restart: from then on it is recorded as these\n"
        "commands would with the same options (--policy, --mode, --profile, --flight, --budget,\n"
        "--module, --function, --exclude, --libs, --depth, --minimum, --thread). Nothing is\n"
        "kept of the policy before. show PID prints the one that is obeyed.\n\n"
        "Options:\n"
        "  --json   set: tell what was done as JSON\n"
        "  --help   this text\n\n"
        "Examples:\n"
        "  sojourn policy check nightly.json\n"
        "  sojourn policy show default >mine.json\n"
        "  sojourn policy set 4711 --mode trace --function 'net_*'\n",
    .run = run_policy,
};
