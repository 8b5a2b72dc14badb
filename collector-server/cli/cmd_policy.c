#include "agent/abi/link.h"
#include "agent/policy/change_obstacle.h"
#include "agent/policy/draft.h"
#include "agent/policy/value_capacity.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/policy_set.h"
#include "collector-server/query/query.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static sj_status load_policy(const char *name, sj_policy *policy, sj_error *error)
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

static void print_duration(const char *label, uint64_t ns)
{
    char text[SJ_DURATION_TEXT_BYTES];
    printf("  %-10s %s\n", label, sj_format_duration((int64_t)ns, text));
}

static void print_patterns(const char *label, const sj_pattern *patterns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        printf("  %-10s %s\n", i == 0 ? label : "", patterns[i].text);
    }
}

static void print_classes(const sj_class_filter *filter)
{
    print_patterns("classes", filter->classes, filter->class_count);
    print_patterns("without", filter->excluded, filter->excluded_count);
    print_patterns("below", filter->ancestors, filter->ancestor_count);
    print_patterns("selectors", filter->selectors, filter->selector_count);
    print_patterns("system", filter->system, filter->system_count);
    if (filter->without_system) {
        printf("  %-10s %s\n", "classes", "not the system's");
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
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        print_classes(&selection->runtimes[i].classes);
    }
    print_patterns("threads", policy->threads, policy->thread_count);
    if (policy->max_depth != 0) {
        printf("  %-10s %" PRIu32 "\n", "depth", policy->max_depth);
    }
    if (policy->minimum_ns != 0) {
        print_duration("minimum", policy->minimum_ns);
    }
    if (policy->resolution_ns == 0) {
        printf("  %-10s %s\n", "resolution", "every tick of the clock");
    } else if (policy->resolution_ns != SJ_POLICY_RESOLUTION_NS) {
        printf("  %-10s %" PRIu64 " ns\n", "resolution", policy->resolution_ns);
    }
    if (policy->counts_calls) {
        printf("  %-10s %s\n", "clock", "adaptive: calls of short functions are counted");
    }
    print_patterns("timed", policy->timed, policy->timed_count);
    for (size_t i = 0; i < policy->sampled_count; i++) {
        printf("  %-10s 1 in %" PRIu32 " of %s\n", i == 0 ? "sampled" : "", policy->sampled[i].n,
               policy->sampled[i].function.text);
    }
}

/* Prints the number of this kind that `bits` encodes. */
static void print_number(uint32_t kind, uint64_t bits)
{
    float single;
    double real;
    memcpy(&single, &bits, sizeof(single));
    memcpy(&real, &bits, sizeof(real));
    if (sj_value_is_real(kind)) {
        printf(" %g", kind == SJ_VALUE_FLOAT ? (double)single : real);
    } else if (kind == SJ_VALUE_POINTER || kind == SJ_VALUE_HEX) {
        printf(" 0x%" PRIx64, bits);
    } else if (kind == SJ_VALUE_ULONG) {
        printf(" %" PRIu64, bits);
    } else {
        printf(" %" PRId64, (int64_t)bits);
    }
}

static void print_change(const sj_value_rule *rule)
{
    static const char *const actions[] = {"", ", set", ", return", ", throw ", ", write"};
    const sj_value_change *change = &rule->change;
    printf(": changes calls%s%s", actions[change->action], change->thrown);
    if (change->action == SJ_CHANGE_SET || change->action == SJ_CHANGE_RETURN) {
        print_number(sj_value_kind_of(change->target), change->bits);
    } else if (change->action == SJ_CHANGE_WRITE) {
        printf(" %" PRIu32 " bytes", change->data_bytes);
    }
    if (change->error != 0) {
        printf(", errno %" PRId32, change->error);
    }
    if (change->delay_ns != 0) {
        char text[SJ_DURATION_TEXT_BYTES];
        printf(", delay %s", sj_format_duration((int64_t)change->delay_ns, text));
    }
}

/* Prints the kinds of methods whose calls a rule cannot change. */
static void print_exceptions(const sj_value_rule *rule)
{
    static const struct {
        sj_link_language language;
        const char *name;
    } runtimes[] = {{SJ_LINK_LANGUAGE_OBJC, "native functions"},
                    {SJ_LINK_LANGUAGE_MONO, "Mono methods"},
                    {SJ_LINK_LANGUAGE_JVM, "Java methods"}};
    for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
        const sj_change_obstacle obstacle = sj_change_obstacle_find(rule, runtimes[i].language);
        if (obstacle != SJ_CHANGE_POSSIBLE) {
            printf("  %-10s no calls of %s: %s\n", "", runtimes[i].name,
                   sj_change_obstacle_texts[obstacle]);
        }
    }
}

static void print_values(const sj_value_rules *rules)
{
    for (size_t i = 0; rules != NULL && i < rules->count; i++) {
        const sj_value_rule *rule = &rules->items[i];
        const uint32_t position = sj_value_position(rule->stored);
        char which[16] = "result";
        if (position != SJ_VALUE_RESULT) {
            snprintf(which, sizeof(which), "%" PRIu32, position);
        }
        if (rule->is_cpu || rule->is_memory) {
            printf("  %-10s %s of %s\n", i == 0 ? "values" : "",
                   !rule->is_memory ? "CPU time"
                   : rule->is_cpu   ? "CPU time and memory"
                                    : "memory",
                   rule->function.text);
            continue;
        }
        if (rule->is_typed) {
            printf("  %-10s %s as its debug data say\n", i == 0 ? "values" : "",
                   rule->function.text);
            continue;
        }
        if (sj_value_kind_of(rule->descriptor) == SJ_VALUE_ERRNO) {
            printf("  %-10s errno of %s", i == 0 ? "values" : "", rule->function.text);
        } else {
            printf("  %-10s %s(%s:%s)%s%s%s", i == 0 ? "values" : "", rule->function.text, which,
                   sj_value_kind_words[sj_value_kind_of(rule->descriptor)],
                   rule->is_source ? " in source order" : "",
                   sj_value_rule_has_condition(rule) ? ", some: " : "",
                   sj_value_rule_has_condition(rule) ? rule->name : "");
        }
        if (rule->changes) {
            print_change(rule);
        }
        putchar('\n');
        print_exceptions(rule);
    }
    if (sj_value_rules_change(rules)) {
        printf("  %-10s only if changes.json of this machine allows it for the program\n",
               "changes");
    }
}

static void print_redaction(const sj_redaction *redaction)
{
    const unsigned bits = sj_redaction_bits(redaction);
    print_patterns("redacted", redaction->values, redaction->value_count);
    if ((bits & SJ_REDACT_PATHS) != 0) {
        printf("  %-10s %s\n", "redacted", "folders of paths");
    }
    if ((bits & SJ_REDACT_COMMAND_LINES) != 0) {
        printf("  %-10s %s\n", "redacted", "command lines");
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
    print_redaction(&policy->redaction);
    if (policy->mode == SJ_POLICY_PROFILE) {
        print_duration("interval", policy->profile_interval_ns);
    }
    if (policy->mode == SJ_POLICY_FLIGHT) {
        print_duration("before", policy->flight_before_ns);
        print_duration("after", policy->flight_after_ns);
    }
    for (size_t i = 0; i < policy->trigger_count; i++) {
        const sj_trigger *trigger = &policy->triggers[i];
        printf("  %-10s %s %s\n", i == 0 ? "triggers" : "", sj_trigger_event_text(trigger->event),
               trigger->subject.text != NULL ? trigger->subject.text : "");
    }
}

static void print_note(void *context, const char *text)
{
    (void)context;
    printf("  note       %s\n", text);
}

static int check_policy(const char *name)
{
    sj_policy policy;
    sj_error error = {0};
    const sj_status status = load_policy(name, &policy, &error);
    if (status != SJ_OK) {
        return sj_command_failed(&sj_command_policy, &error);
    }
    print_policy(name, &policy);
    sj_value_capacity_each_crowded(policy.selection.values, SJ_LINK_METHOD_VALUES, NULL,
                                   print_note);
    sj_policy_free(&policy);
    return SJ_EXIT_OK;
}

static int show_policy(const char *name)
{
    sj_policy policy;
    sj_error error = {0};
    const sj_status status = load_policy(name, &policy, &error);
    if (status != SJ_OK) {
        return sj_command_failed(&sj_command_policy, &error);
    }
    const char *preset = sj_policy_preset(name);
    fputs(preset != NULL ? preset : policy.document, stdout);
    if (preset == NULL) {
        putchar('\n');
    }
    sj_policy_free(&policy);
    return SJ_EXIT_OK;
}

static int list_presets(void)
{
    for (size_t i = 0; sj_policy_presets[i] != NULL; i++) {
        puts(sj_policy_presets[i]);
    }
    return SJ_EXIT_OK;
}

static int run_policy(int argc, char **argv)
{
    int first = 0;
    if (argc > 1 && strcmp(argv[1], "set") == 0) {
        return sj_policy_set_run(argc - 1, argv + 1);
    }
    const int code = sj_options_parse(&sj_command_policy, argc, argv, NULL, &first);
    if (code >= 0) {
        return code;
    }
    const char *verb = first < argc ? argv[first] : "";
    const int values = argc - first - 1;
    if (strcmp(verb, "list") == 0 && values == 0) {
        return list_presets();
    }
    if (strcmp(verb, "check") == 0 && values == 1) {
        return check_policy(argv[first + 1]);
    }
    if (strcmp(verb, "show") == 0 && values == 1) {
        const char *name = argv[first + 1];
        return name[strspn(name, "0123456789")] == '\0' ? sj_policy_show_running(name)
                                                        : show_policy(name);
    }
    return sj_command_usage_error(
        &sj_command_policy, "say check or show and a file or shipped policy, set and a process, or "
                            "list");
}

const sj_command sj_command_policy = {
    .name = "policy",
    .summary = "check, show, list and set policies: what is recorded, how, at what cost",
    .usage = "sojourn policy check|show FILE|NAME | show PID | set [OPTIONS] PID|NAME | list",
    .help =
        "A policy is one JSON document that says what is recorded. check reads one and prints\n"
        "its meaning, or the place of its first mistake. show prints the document. list names\n"
        "the shipped ones: default, everything, jank, coverage, zombies, zombies-field,\n"
        "minitrace.\n\n"
        "set gives a running recording of `sojourn record` or `sojourn attach` another policy,\n"
        "without a restart. The options mean what they mean for these commands (--policy,\n"
        "--mode, --profile, --flight, --budget, --module, --function, --exclude, --libs,\n"
        "--depth, --minimum, --thread). Only values that the former policy recorded are recorded\n"
        "to the end. show PID prints the current policy.\n",
    .examples = "Examples:\n"
                "  sojourn policy check nightly.json\n"
                "  sojourn policy show default >mine.json\n"
                "  sojourn policy set 4711 --mode trace --function 'net_*'\n",
    .run = run_policy,
};
