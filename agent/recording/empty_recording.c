#include "agent/recording/empty_recording.h"

#include "agent/host/own_limits.h"
#include "proto/base/units.h"

#include <stdio.h>
#include <string.h>

enum { NAMES_BYTES = 640 };

static unsigned long long printable(uint64_t value)
{
    return (unsigned long long)value;
}

static void explain_modules(const sj_policy *policy, sj_function_rules *rules, char *text,
                            size_t capacity)
{
    char names[NAMES_BYTES];
    sj_seen_names_describe(sj_function_rules_modules(rules), "none", names, sizeof(names));
    snprintf(text, capacity,
             "%s; loaded were %s (--libs records system libraries, --library-calls "
             "the calls into them)",
             policy->selection.module_count != 0 ? "--module matches no module that can be recorded"
                                                 : "the program has no module of its own",
             names);
}

static void explain_functions(const sj_registry_counters *registry, char *text, size_t capacity)
{
    if (registry->filtered != 0) {
        snprintf(text, capacity,
                 "the policy selects none of the functions that can be hooked: "
                 "it leaves out %llu of %llu",
                 printable(registry->filtered), printable(registry->functions));
    } else {
        snprintf(text, capacity, "none of %s could be hooked; \"sojourn functions\" says why",
                 SJ_COUNTED(registry->functions, "function"));
    }
}

static void explain_threads(sj_function_rules *rules, char *text, size_t capacity)
{
    char names[NAMES_BYTES];
    sj_seen_names_describe(sj_function_rules_threads(rules), "none that called a hooked function",
                           names, sizeof(names));
    snprintf(text, capacity, "no thread matched --thread; threads were %s", names);
}

/* If the recorder has low limits, names them, because they can cause missing calls. */
static void explain_calls(const sj_registry_counters *registry, char *text, size_t capacity)
{
    char limits[256];
    sj_own_limits_describe(limits, sizeof(limits));
    if (limits[0] != '\0') {
        snprintf(text, capacity, "no call of %s reached the recorder; %s",
                 SJ_COUNTED(registry->hooked, "hooked function"), limits);
    } else {
        snprintf(text, capacity, "none of %s was called",
                 SJ_COUNTED(registry->hooked, "hooked function"));
    }
}

void sj_empty_recording_explain(const sj_recording_summary *summary, const sj_policy *policy,
                                sj_function_rules *rules, char *text, size_t capacity)
{
    const bool has_rules = policy != NULL && rules != NULL;
    text[0] = '\0';
    if (summary->calls != 0 || summary->lost_events != 0 || !summary->agent_reported ||
        summary->drain.dumps != 0 ||
        (policy != NULL && (policy->zombies.one_in != 0 || policy->zombies.objects.is_on != 0))) {
        return;
    }
    if (has_rules && summary->registry.modules == 0) {
        explain_modules(policy, rules, text, capacity);
    } else if (summary->registry.hooked == 0) {
        explain_functions(&summary->registry, text, capacity);
    } else if (has_rules && policy->thread_count != 0 && !sj_function_rules_has_thread(rules)) {
        explain_threads(rules, text, capacity);
    } else if (summary->drain.calls == 0) {
        explain_calls(&summary->registry, text, capacity);
    } else if (has_rules && policy->mode == SJ_POLICY_FLIGHT) {
        snprintf(text, capacity,
                 "no trigger fired, so the flight recorder shipped none of %s; name one "
                 "in a policy (\"triggers\", see sojourn-policy(1)), or run \"sojourn trigger\" "
                 "meanwhile",
                 SJ_COUNTED(summary->drain.calls, "call"));
    } else {
        snprintf(text, capacity, "the policy filtered all calls (%llu)",
                 printable(summary->drain.calls));
    }
}
