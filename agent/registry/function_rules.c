#include "agent/registry/function_rules.h"

#include "agent/policy/thread_filter.h"
#include "proto/base/units.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { SENT_AT_ONCE = 2048 };

typedef struct filtered_count {
    uint64_t calls;
    uint64_t ticks;
} filtered_count;

struct sj_function_rules {
    const sj_policy *policy;
    sj_changes_table *changes;   /* NULL: none */
    sj_function_rule *functions; /* [SJ_RULED_FUNCTIONS], mapped lazily */
    sj_ruled_values *values;     /* [SJ_RULED_FUNCTIONS], mapped lazily; the first is empty */
    uint32_t value_count;
    uint32_t *samples; /* [SJ_RULED_FUNCTIONS], mapped lazily: calls of sampled functions */
    filtered_count *counts[SJ_FILTERED_REASONS]; /* each [SJ_RULED_FUNCTIONS], mapped lazily */
    uint32_t highest;                            /* highest id that was counted */
    uint32_t matched_triggers;
    uint32_t matched_sampled;
    sj_rule_set matched_values;
    uint64_t matched_functions;
    uint64_t matched_timed;
    uint64_t matched_excluded;
    uint64_t matched_sources;
    uint64_t matched_sources_excluded;
    uint64_t matched_modules;
    uint64_t matched_modules_excluded;
    /* sj_change_obstacle of rules that name methods whose calls they cannot change */
    _Atomic uint8_t obstacles[SJ_VALUE_RULES];
    sj_seen_names modules;
    sj_seen_names threads;
    _Atomic bool has_thread;
};

static void *map_lazily(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

sj_status sj_function_rules_new(const sj_policy *policy, sj_function_rules **rules)
{
    sj_function_rules *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    made->policy = policy;
    sj_seen_names_init(&made->modules);
    sj_seen_names_init(&made->threads);
    made->functions = map_lazily(SJ_RULED_FUNCTIONS * sizeof(*made->functions));
    made->samples = map_lazily(SJ_RULED_FUNCTIONS * sizeof(*made->samples));
    made->values = map_lazily(SJ_RULED_FUNCTIONS * sizeof(*made->values));
    bool complete = made->functions != NULL && made->samples != NULL && made->values != NULL;
    for (size_t i = 0; i < SJ_FILTERED_REASONS; i++) {
        made->counts[i] = map_lazily(SJ_RULED_FUNCTIONS * sizeof(*made->counts[i]));
        complete = complete && made->counts[i] != NULL;
    }
    if (!complete) {
        sj_function_rules_free(made);
        return SJ_ENOMEM;
    }
    *rules = made;
    return SJ_OK;
}

void sj_function_rules_free(sj_function_rules *rules)
{
    if (rules == NULL) {
        return;
    }
    if (rules->functions != NULL) {
        munmap(rules->functions, SJ_RULED_FUNCTIONS * sizeof(*rules->functions));
    }
    if (rules->values != NULL) {
        munmap(rules->values, SJ_RULED_FUNCTIONS * sizeof(*rules->values));
    }
    if (rules->samples != NULL) {
        munmap(rules->samples, SJ_RULED_FUNCTIONS * sizeof(*rules->samples));
    }
    for (size_t i = 0; i < SJ_FILTERED_REASONS; i++) {
        if (rules->counts[i] != NULL) {
            munmap(rules->counts[i], SJ_RULED_FUNCTIONS * sizeof(*rules->counts[i]));
        }
    }
    sj_seen_names_deinit(&rules->modules);
    sj_seen_names_deinit(&rules->threads);
    free(rules);
}

static bool is_about_functions(const sj_trigger *trigger)
{
    return trigger->event == SJ_TRIGGER_RATE || trigger->event == SJ_TRIGGER_NTH_CALL ||
           trigger->event == SJ_TRIGGER_SLOW_CALL ||
           (trigger->event == SJ_TRIGGER_JANK && trigger->subject.text != NULL);
}

static uint64_t matching_symbols(const sj_pattern *patterns, size_t count, const char *symbol)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < count; i++) {
        bits |= sj_pattern_matches_symbol(&patterns[i], symbol) ? UINT64_C(1) << i : 0;
    }
    return bits;
}

void sj_function_rules_set_changes(sj_function_rules *rules, sj_changes_table *changes)
{
    rules->changes = changes;
}

void sj_function_rules_beat(sj_function_rules *rules)
{
    if (rules->changes != NULL) {
        sj_changes_table_beat(rules->changes);
    }
}

/* Returns the matched rules that can change calls of a language's methods. Stores the obstacles of
 * the others. */
static sj_rule_set changing_of(sj_function_rules *rules, const sj_rule_set *matched,
                               sj_link_language language)
{
    const sj_value_rules *values = rules->policy->selection.values;
    sj_rule_set changing = *matched;
    SJ_EACH_RULE (i, matched) {
        const sj_change_obstacle obstacle = sj_change_obstacle_find(&values->items[i], language);
        if (obstacle != SJ_CHANGE_POSSIBLE) {
            atomic_store(&rules->obstacles[i], (uint8_t)obstacle);
            sj_rule_set_remove(&changing, i);
        }
    }
    return changing;
}

/* True if each rule about a function changes its calls and has a condition on its own value. Then
 * values that meet no condition are not recorded. */
static bool is_quiet(const sj_value_rules *values, const sj_rule_set *matched,
                     const sj_rule_set *changing)
{
    bool is_quiet = !sj_rule_set_is_empty(matched);
    SJ_EACH_RULE (i, matched) {
        const sj_value_rule *rule = &values->items[i];
        is_quiet = is_quiet && rule->changes && rule->own.comparison != SJ_VALUE_ALWAYS &&
                   sj_rule_set_has(changing, i);
    }
    return is_quiet;
}

/* Marks the rules that name a function as matched. Marks as redacted the rules that do not apply to
 * it because its texts are redacted. */
static void mark_named(sj_function_rules *rules, const char *symbol, const sj_rule_set *applied)
{
    sj_value_rules *all = rules->policy->selection.values;
    const sj_rule_set named = sj_value_rules_named(all, symbol);
    sj_rule_set_add_all(&rules->matched_values, &named);
    SJ_EACH_RULE (i, &named) {
        if (!sj_rule_set_has(applied, i)) {
            atomic_store(&all->is_redacted[i], true);
        }
    }
}

/* Stores the rules about values of a function, and adds them to the table of changes. */
static void name_values(sj_function_rules *rules, uint32_t function, const char *symbol,
                        sj_link_language language)
{
    const sj_value_rules *all = rules->policy->selection.values;
    sj_function_rule *rule = &rules->functions[function];
    const sj_ruled_values values = {.values = sj_value_rules_match(all, symbol),
                                    .called_from = sj_value_rules_called_from(all, symbol)};
    mark_named(rules, symbol, &values.values);
    if (rule->values == 0 && sj_rule_set_is_empty(&values.values) &&
        sj_rule_set_is_empty(&values.called_from)) {
        return;
    }
    const uint32_t place = rule->values != 0 ? rule->values : rules->value_count + 1;
    if (place == SJ_RULED_FUNCTIONS) {
        return;
    }
    rules->value_count = place > rules->value_count ? place : rules->value_count;
    rules->values[place] = values;
    rule->values = place;
    if (rules->changes != NULL) {
        const sj_rule_set changing = changing_of(rules, &values.values, language);
        sj_changes_table_add(rules->changes, function, &changing, &values.called_from,
                             is_quiet(all, &values.values, &changing),
                             language == SJ_LINK_LANGUAGE_JVM);
    }
}

void sj_function_rules_name(sj_function_rules *rules, uint32_t function, const char *symbol)
{
    if (function < SJ_RULED_FUNCTIONS) {
        rules->functions[function].is_import = strchr(symbol, '!') != NULL;
    }
    sj_function_rules_name_method(rules, function, symbol, SJ_LINK_LANGUAGE_OBJC);
}

bool sj_function_rules_is_import(const sj_function_rules *rules, uint32_t function)
{
    return function < SJ_RULED_FUNCTIONS && rules->functions[function].is_import;
}

void sj_function_rules_name_method(sj_function_rules *rules, uint32_t function, const char *symbol,
                                   sj_link_language language)
{
    const sj_policy *policy = rules->policy;
    const sj_selection *selection = &policy->selection;
    if (function >= SJ_RULED_FUNCTIONS) {
        return;
    }
    sj_function_rule *rule = &rules->functions[function];
    rules->matched_functions |=
        matching_symbols(selection->functions, selection->function_count, symbol);
    rules->matched_excluded |=
        matching_symbols(selection->excluded, selection->excluded_count, symbol);
    for (size_t i = 0; i < policy->trigger_count; i++) {
        const sj_trigger *trigger = &policy->triggers[i];
        if (is_about_functions(trigger) && (trigger->subject.text == NULL ||
                                            sj_pattern_matches_symbol(&trigger->subject, symbol))) {
            rule->triggers |= UINT32_C(1) << i;
            rules->matched_triggers |= UINT32_C(1) << i;
        }
    }
    name_values(rules, function, symbol, language);
    const uint64_t timed = matching_symbols(policy->timed, policy->timed_count, symbol);
    rules->matched_timed |= timed;
    rule->is_timed = timed != 0;
    for (size_t i = 0; i < policy->sampled_count; i++) {
        if (sj_pattern_matches_symbol(&policy->sampled[i].function, symbol)) {
            rule->one_in = policy->sampled[i].n;
            rules->matched_sampled |= UINT32_C(1) << i;
        }
    }
}

/* Advice for missing debug data, indexed by sj_split_state. */
static const char *const untyped_advice[] = {
    [SJ_SPLIT_COMPLETE] = "give a signature instead, or of Mono methods name one value",
    [SJ_SPLIT_MISSING] = "they were split to .dwo files that are not there, nor is a package of "
                         "them (.dwp) beside the module: put those files back, or give a signature",
    [SJ_SPLIT_OTHER] = "the package of split debug data beside the module (.dwp) is of another "
                       "build: put its own there, or the .dwo files, or give a signature",
    [SJ_SPLIT_TOO_LARGE] = "the package of split debug data beside the module (.dwp) goes beyond "
                           "what is read of one, 1 GiB or 2^20 units: put the .dwo files back, or "
                           "give a signature",
    [SJ_SPLIT_DAMAGED] = "the package of split debug data beside the module (.dwp) is damaged, or "
                         "of a version that is not known: make it anew, put the .dwo files back, "
                         "or give a signature",
};

/* Visits a text for each reason why a rule does not record or change values of some functions. */
static void visit_untyped(const sj_value_rules *values, size_t rule, void *context,
                          void (*visit)(void *context, const char *text))
{
    char text[SJ_UNCHANGING_BYTES];
    if (atomic_load(&values->is_redacted[rule])) {
        snprintf(text, sizeof(text),
                 "rule '%s': it records nothing of functions whose texts the policy redacts",
                 values->items[rule].name);
        visit(context, text);
    }
    const uint32_t crowded = atomic_load(&values->crowded[rule]);
    if (crowded != 0) {
        snprintf(
            text, sizeof(text),
            "rule '%s': other rules use the space for values of %s, so values are missing or texts "
            "are cut; use narrower patterns or fewer values",
            values->items[rule].name, SJ_COUNTED(crowded, "function"));
        visit(context, text);
    }
    const uint32_t settled = atomic_load(&values->settled[rule]);
    if (settled != 0) {
        const bool is_typed = values->items[rule].is_typed;
        snprintf(text, sizeof(text),
                 "rule '%s': values of %s are recorded by %s so far: record again to "
                 "have them by %s",
                 values->items[rule].name, SJ_COUNTED(settled, "function"),
                 is_typed ? "number or signature" : "debug data",
                 is_typed ? "debug data" : "number or signature");
        visit(context, text);
    }
    const uint32_t unreached = atomic_load(&values->unreached[rule]);
    if (unreached != 0) {
        snprintf(
            text, sizeof(text),
            "rule '%s': results of %s do not change, because the library itself is recorded: name "
            "its functions instead of calls into it",
            values->items[rule].name, SJ_COUNTED(unreached, "function"));
        visit(context, text);
    }
    const uint32_t missing = atomic_load(&values->missing[rule]);
    if (missing != 0 && values->items[rule].is_memory) {
        snprintf(text, sizeof(text),
                 "memory of %.100s is counted in calls of native functions only, not of %s "
                 "of Mono and Java",
                 values->items[rule].function.text, SJ_COUNTED(missing, "method"));
        visit(context, text);
    } else if (missing != 0) {
        snprintf(text, sizeof(text),
                 "--value %.100s: no debug data about %u of %s, whose values are not "
                 "recorded; %s",
                 values->items[rule].function.text, missing,
                 SJ_COUNTED(missing + atomic_load(&values->found[rule]), "function"),
                 untyped_advice[atomic_load(&values->split[rule])]);
        visit(context, text);
    }
}

void sj_function_rules_each_untyped(const sj_function_rules *rules, void *context,
                                    void (*visit)(void *context, const char *text))
{
    const sj_value_rules *values = rules->policy->selection.values;
    for (size_t i = 0; values != NULL && i < values->count; i++) {
        if (!values->items[i].is_former) {
            visit_untyped(values, i, context, visit);
        }
    }
}

void sj_function_rules_each_unchanging(const sj_function_rules *rules, void *context,
                                       void (*visit)(void *context, const char *text))
{
    const sj_value_rules *values = rules->policy->selection.values;
    char text[SJ_UNCHANGING_BYTES];
    for (size_t i = 0; values != NULL && i < values->count; i++) {
        const uint8_t obstacle = atomic_load(&rules->obstacles[i]);
        if (obstacle != SJ_CHANGE_POSSIBLE) {
            snprintf(text, sizeof(text), "rule '%s': %s", values->items[i].name,
                     sj_change_obstacle_texts[obstacle]);
            visit(context, text);
        }
        const uint64_t unfit = rules->changes != NULL
                                   ? sj_changes_table_unfit(rules->changes, values->items[i].name)
                                   : 0;
        if (unfit != 0) {
            snprintf(text, sizeof(text),
                     "rule '%s': its value does not have the type of the methods; calls left "
                     "unchanged: %" PRIu64 "; name the type with \"as\"",
                     values->items[i].name, unfit);
            visit(context, text);
        }
    }
    for (size_t i = 0; values != NULL && i < values->count; i++) {
        visit_untyped(values, i, context, visit);
    }
}

void sj_function_rules_keep_unchanging(sj_function_rules *rules, const sj_function_rules *before)
{
    for (size_t i = 0; rules->changes != NULL && i < SJ_VALUE_RULES; i++) {
        const uint8_t obstacle = atomic_load(&before->obstacles[i]);
        if (obstacle != SJ_CHANGE_POSSIBLE) {
            atomic_store(&rules->obstacles[i], obstacle);
        }
    }
}

static uint64_t matching_files(const sj_pattern *patterns, size_t count, const char *path)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < count; i++) {
        bits |= sj_selection_names_file(&patterns[i], path) ? UINT64_C(1) << i : 0;
    }
    return bits;
}

void sj_function_rules_module(sj_function_rules *rules, const char *path)
{
    const sj_selection *selection = &rules->policy->selection;
    sj_seen_names_add(&rules->modules, path);
    rules->matched_modules |= matching_files(selection->modules, selection->module_count, path);
    rules->matched_modules_excluded |=
        matching_files(selection->modules_excluded, selection->modules_excluded_count, path);
}

bool sj_function_rules_thread(sj_function_rules *rules, const char *name)
{
    const bool is_wanted = sj_thread_is_wanted(rules->policy, name);
    sj_seen_names_add(&rules->threads, name);
    if (is_wanted) {
        atomic_store(&rules->has_thread, true);
    }
    return is_wanted;
}

sj_seen_names *sj_function_rules_modules(sj_function_rules *rules)
{
    return &rules->modules;
}

sj_seen_names *sj_function_rules_threads(sj_function_rules *rules)
{
    return &rules->threads;
}

bool sj_function_rules_has_thread(const sj_function_rules *rules)
{
    return atomic_load(&rules->has_thread);
}

void sj_function_rules_source(sj_function_rules *rules, const char *file)
{
    const sj_selection *selection = &rules->policy->selection;
    rules->matched_sources |= matching_files(selection->sources, selection->source_count, file);
    rules->matched_sources_excluded |=
        matching_files(selection->sources_excluded, selection->sources_excluded_count, file);
}

sj_function_rule sj_function_rules_get(const sj_function_rules *rules, uint32_t function)
{
    return function < SJ_RULED_FUNCTIONS ? rules->functions[function] : (sj_function_rule){0};
}

const sj_ruled_values *sj_function_rules_values(const sj_function_rules *rules, uint32_t function)
{
    return &rules->values[sj_function_rules_get(rules, function).values];
}

bool sj_function_rules_sample(sj_function_rules *rules, uint32_t function, uint32_t one_in)
{
    return function >= SJ_RULED_FUNCTIONS || rules->samples[function]++ % one_in == 0;
}

void sj_function_rules_count(sj_function_rules *rules, sj_filter_reason reason, uint32_t function,
                             uint64_t ticks)
{
    if (function < SJ_RULED_FUNCTIONS) {
        rules->counts[reason][function].calls++;
        rules->counts[reason][function].ticks += ticks;
        rules->highest = function > rules->highest ? function : rules->highest;
    }
}

static sj_status send_reason(sj_function_rules *rules, sj_filter_reason reason,
                             sj_frame_writer *writer)
{
    static const char *const words[] = {"depth", "minimum", "sampled", "thread"};
    static uint32_t functions[SENT_AT_ONCE];
    static uint64_t calls[SENT_AT_ONCE];
    static uint64_t ticks[SENT_AT_ONCE];
    filtered_count *counts = rules->counts[reason];
    size_t count = 0;
    for (uint32_t id = 1; id <= rules->highest; id++) {
        if (counts[id].calls != 0) {
            functions[count] = id;
            calls[count] = counts[id].calls;
            ticks[count++] = counts[id].ticks;
            counts[id] = (filtered_count){0};
        }
        if (count == SENT_AT_ONCE || (id == rules->highest && count != 0)) {
            Sojourn__Filtered message = SOJOURN__FILTERED__INIT;
            message.reason = (char *)(uintptr_t)words[reason];
            message.n_function = message.n_calls = message.n_ticks = count;
            message.function = functions;
            message.calls = calls;
            message.ticks = ticks;
            SJ_TRY(sj_frame_writer_filtered(writer, &message));
            count = 0;
        }
    }
    return SJ_OK;
}

sj_status sj_function_rules_send(sj_function_rules *rules, sj_frame_writer *writer)
{
    for (int reason = 0; reason < SJ_FILTERED_REASONS && rules->highest != 0; reason++) {
        SJ_TRY(send_reason(rules, (sj_filter_reason)reason, writer));
    }
    return SJ_OK;
}

/* A list of patterns at two nested keys. `matched`: one bit per pattern that has matched. */
typedef struct pattern_list {
    const char *kind;
    const char *key;
    const char *inner_key;
    const sj_pattern *patterns;
    size_t count;
    uint64_t matched;
} pattern_list;

static void visit_list(const pattern_list *list, void *context,
                       void (*visit)(void *context, const sj_unmatched *unmatched))
{
    for (size_t i = 0; i < list->count; i++) {
        if ((list->matched >> i & 1) == 0) {
            const sj_unmatched unmatched = {
                .kind = list->kind,
                .pattern = &list->patterns[i],
                .steps = {{.key = list->key}, {.key = list->inner_key}, {.index = i}},
                .step_count = 3};
            visit(context, &unmatched);
        }
    }
}

static void visit_lists(const sj_function_rules *rules, void *context,
                        void (*visit)(void *context, const sj_unmatched *unmatched))
{
    const sj_selection *selection = &rules->policy->selection;
    const pattern_list lists[] = {
        {"module", "modules", "include", selection->modules, selection->module_count,
         rules->matched_modules},
        {"module", "modules", "exclude", selection->modules_excluded,
         selection->modules_excluded_count, rules->matched_modules_excluded},
        {"function", "functions", "include", selection->functions, selection->function_count,
         rules->matched_functions},
        {"function", "functions", "exclude", selection->excluded, selection->excluded_count,
         rules->matched_excluded},
        {"source file", "sources", "include", selection->sources, selection->source_count,
         rules->matched_sources},
        {"source file", "sources", "exclude", selection->sources_excluded,
         selection->sources_excluded_count, rules->matched_sources_excluded},
        {"function", "calls", "timed", rules->policy->timed, rules->policy->timed_count,
         rules->matched_timed}};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        visit_list(&lists[i], context, visit);
    }
}

/* True for the first rule of its row, because a signature makes several rules with one pattern.
 * False for rules of earlier policies, which are also in the list. */
static bool is_first_of_row(const sj_value_rules *values, size_t rule)
{
    for (size_t i = 0; i < rule; i++) {
        if (!values->items[i].is_former && values->items[i].row == values->items[rule].row) {
            return false;
        }
    }
    return !values->items[rule].is_former;
}

void sj_function_rules_each_unmatched(const sj_function_rules *rules, void *context,
                                      void (*visit)(void *context, const sj_unmatched *unmatched))
{
    const sj_policy *policy = rules->policy;
    visit_lists(rules, context, visit);
    for (size_t i = 0; i < policy->sampled_count; i++) {
        if ((rules->matched_sampled >> i & 1) == 0) {
            const sj_unmatched unmatched = {
                .kind = "function",
                .pattern = &policy->sampled[i].function,
                .steps = {{.key = "calls"}, {.key = "one_in"}, {.index = i}, {.key = "function"}},
                .step_count = 4};
            visit(context, &unmatched);
        }
    }
    const sj_value_rules *values = policy->selection.values;
    for (size_t i = 0; values != NULL && i < values->count; i++) {
        if (is_first_of_row(values, i) && !sj_rule_set_has(&rules->matched_values, i)) {
            const sj_unmatched unmatched = {
                .kind = "function",
                .pattern = &values->items[i].function,
                .steps = {{.key = "values"}, {.index = values->items[i].row}, {.key = "function"}},
                .step_count = 3};
            visit(context, &unmatched);
        }
    }
    for (size_t i = 0; i < policy->trigger_count; i++) {
        const sj_trigger *trigger = &policy->triggers[i];
        if (is_about_functions(trigger) && trigger->subject.text != NULL &&
            (rules->matched_triggers >> i & 1) == 0) {
            const sj_unmatched unmatched = {
                .kind = "function",
                .pattern = &trigger->subject,
                .steps = {{.key = "triggers"}, {.index = i}, {.key = "function"}},
                .step_count = 3};
            visit(context, &unmatched);
        }
    }
}

typedef struct text_list {
    char *text;
    size_t capacity;
} text_list;

static void list_pattern(void *context, const sj_unmatched *unmatched)
{
    const text_list *list = context;
    const size_t used = strlen(list->text);
    char quoted[2 * SJ_PATTERN_MAX_BYTES + 8];
    size_t at = 0;
    for (const char *from = unmatched->pattern->text; *from != '\0'; from++) {
        if (*from == '"' || *from == '\\') {
            quoted[at++] = '\\';
        }
        quoted[at++] = *from;
    }
    quoted[at] = '\0';
    if (used + at + 6 < list->capacity) {
        snprintf(list->text + used, list->capacity - used, "%s\"%s\"", used > 1 ? ", " : "",
                 quoted);
    }
}

void sj_function_rules_unmatched(const sj_function_rules *rules, char *text, size_t capacity)
{
    text_list list = {.text = text, .capacity = capacity};
    snprintf(text, capacity, "[");
    sj_function_rules_each_unmatched(rules, &list, list_pattern);
    const size_t used = strlen(text);
    snprintf(text + used, capacity - used, "]");
}
