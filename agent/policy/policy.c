/* Design notes.
 *
 * jansson parses the text. The functions below walk its values along tables of known keys, and keep
 * the path to the current value. So each error has a place in the text (json_place.h). A document
 * is applied on top of its "base": keys that it omits keep the base's values, and a list replaces
 * the base's list. */
#include "agent/policy/policy.h"

#include "agent/policy/json_place.h"
#include "agent/policy/policy_reader.h"
#include "proto/base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COARSEST_NS = 1000 * 1000 };

static const char *const mode_words[] = {"trace", "profile", "flight"};

const char *sj_policy_mode_text(sj_policy_mode mode)
{
    return mode_words[mode];
}

static sj_status read_budget(sj_policy_reader *reader, void *target, json_t *value)
{
    double *budget_percent = target;
    const char *text = json_string_value(value);
    char *end = NULL;
    double percent = json_is_number(value) ? json_number_value(value) : -1;
    if (json_is_null(value)) {
        *budget_percent = 0;
        return SJ_OK;
    }
    if (text != NULL) {
        percent = text[0] >= '0' && text[0] <= '9' ? strtod(text, &end) : -1;
        percent = end != NULL && strcmp(end, "%") == 0 ? percent : -1;
    }
    if (!(percent >= 0.1 && percent <= 100)) {
        return sj_policy_fail(reader, false,
                              "a budget from \"0.1%%\" to \"100%%\" is needed, such as \"10%%\" "
                              "(null: none)");
    }
    *budget_percent = percent;
    return SJ_OK;
}

static sj_status read_resolution(sj_policy_reader *reader, void *target, json_t *value)
{
    uint64_t *resolution_ns = target;
    const char *text = json_string_value(value);
    uint64_t ns = 0;
    if (text != NULL && strcmp(text, "exact") == 0) {
        *resolution_ns = 0;
        return SJ_OK;
    }
    if (text == NULL || !sj_duration_parse(text, &ns) || ns == 0 || ns > COARSEST_NS) {
        return sj_policy_fail(reader, false,
                              "\"exact\" or a time from \"1ns\" to \"1ms\" is needed");
    }
    *resolution_ns = ns;
    return SJ_OK;
}

static sj_status read_clock(sj_policy_reader *reader, void *target, json_t *value)
{
    bool *counts_calls = target;
    const char *text = json_string_value(value);
    if (text == NULL || (strcmp(text, "exact") != 0 && strcmp(text, "adaptive") != 0)) {
        return sj_policy_fail(reader, false, "\"exact\" or \"adaptive\" is needed");
    }
    *counts_calls = strcmp(text, "adaptive") == 0;
    reader->has_clock = true;
    return SJ_OK;
}

static sj_status read_sampled(sj_policy_reader *reader, void *target, json_t *value)
{
    static const sj_policy_key keys[] = {
        {"function", SJ_KEY_PATTERN, SJ_MEMBER(sj_policy_sampling, function)},
        {"n", SJ_KEY_NUMBER, SJ_MEMBER(sj_policy_sampling, n), .least = 1, .most = 1000000000}};
    sj_policy_sampling *sampled = target;
    sj_policy *policy = reader->policy;
    if (!json_is_array(value) || json_array_size(value) > SJ_POLICY_SAMPLED) {
        return sj_policy_fail(reader, false, "a list [ ] of at most %d objects is needed",
                              SJ_POLICY_SAMPLED);
    }
    for (size_t i = 0; i < policy->sampled_count; i++) {
        sj_pattern_free(&sampled[i].function);
    }
    memset(sampled, 0, sizeof(policy->sampled));
    policy->sampled_count = 0;
    for (size_t i = 0; i < json_array_size(value); i++) {
        sj_policy_enter(reader, NULL, i);
        SJ_TRY(sj_policy_object(reader, json_array_get(value, i), &sampled[i], SJ_KEY_LIST(keys)));
        policy->sampled_count++;
        if (sampled[i].function.text == NULL || sampled[i].n == 0) {
            return sj_policy_fail(reader, false, "both \"function\" and \"n\" are needed");
        }
        sj_policy_leave(reader);
    }
    return SJ_OK;
}

static const sj_policy_key module_keys[] = {
    {"include", SJ_PATTERNS(sj_selection, modules, module_count)},
    {"exclude", SJ_PATTERNS(sj_selection, modules_excluded, modules_excluded_count)},
    {"system", SJ_KEY_BOOLEAN, SJ_MEMBER(sj_selection, all_libraries)},
    {"library_calls", SJ_KEY_BOOLEAN, SJ_MEMBER(sj_selection, library_calls)}};

static const sj_policy_key function_keys[] = {
    {"include", SJ_PATTERNS(sj_selection, functions, function_count)},
    {"exclude", SJ_PATTERNS(sj_selection, excluded, excluded_count)}};

static const sj_policy_key source_keys[] = {
    {"include", SJ_PATTERNS(sj_selection, sources, source_count)},
    {"exclude", SJ_PATTERNS(sj_selection, sources_excluded, sources_excluded_count)}};

static const sj_policy_key call_keys[] = {
    {"depth", SJ_KEY_NUMBER, SJ_MEMBER(sj_policy, max_depth), .least = 1, .most = 1000000},
    {"minimum", SJ_KEY_TIME, SJ_MEMBER(sj_policy, minimum_ns)},
    {"resolution", SJ_KEY_CUSTOM, SJ_MEMBER(sj_policy, resolution_ns), .parse = read_resolution},
    {"clock", SJ_KEY_CUSTOM, SJ_MEMBER(sj_policy, counts_calls), .parse = read_clock},
    {"timed", SJ_PATTERNS(sj_policy, timed, timed_count)},
    {"threads", SJ_PATTERNS(sj_policy, threads, thread_count)},
    {"one_in", SJ_KEY_CUSTOM, SJ_MEMBER(sj_policy, sampled), .parse = read_sampled}};

static const sj_policy_key profile_keys[] = {
    {"interval", SJ_KEY_TIME, SJ_MEMBER(sj_policy, profile_interval_ns), .least = 100000000},
    {"window", SJ_KEY_TIME, SJ_MEMBER(sj_policy, profile_window_ns), .least = 1}};

static const sj_policy_key flight_keys[] = {
    {"before", SJ_KEY_TIME, SJ_MEMBER(sj_policy, flight_before_ns), .least = 1},
    {"after", SJ_KEY_TIME, SJ_MEMBER(sj_policy, flight_after_ns)},
    {"memory", SJ_KEY_SIZE, SJ_MEMBER(sj_policy, flight_bytes), .least = UINT64_C(1) << 20,
     .most = UINT64_C(1) << 40}};

static const char *const full_words[] = {"block", "drop"};
static const sj_policy_key buffer_keys[] = {
    {"chunks", SJ_KEY_NUMBER, SJ_MEMBER(sj_policy, chunks_per_thread), .least = 1, .most = 64},
    {"when_full", SJ_KEY_WORD, SJ_MEMBER(sj_policy, drop_when_full), SJ_WORDS(full_words)},
    {"block_ms", SJ_KEY_NUMBER, SJ_MEMBER(sj_policy, block_ms), .least = 1, .most = 10000}};

static const sj_policy_key redact_keys[] = {
    {"values", SJ_PATTERNS(sj_redaction, values, value_count)},
    {"paths", SJ_KEY_BOOLEAN, SJ_MEMBER(sj_redaction, paths)},
    {"command_lines", SJ_KEY_BOOLEAN, SJ_MEMBER(sj_redaction, command_lines)}};

static const char *const unmatched_words[] = {"refuse", "allow"};
static const char *const begin_words[] = {"at_once", "triggered"};
static const sj_policy_key document_keys[] = {
    {"policy", SJ_KEY_CUSTOM, .parse = NULL}, /* check_format */
    {"name", SJ_KEY_TEXT, SJ_MEMBER(sj_policy, name)},
    {"description", SJ_KEY_TEXT, .bytes = 0},
    {"version", SJ_KEY_NUMBER, SJ_MEMBER(sj_policy, version), .least = 1, .most = UINT32_MAX},
    {"base", SJ_KEY_CUSTOM, .parse = NULL}, /* read_base */
    {"mode", SJ_KEY_WORD, SJ_MEMBER(sj_policy, mode), SJ_WORDS(mode_words)},
    {"unmatched", SJ_KEY_WORD, SJ_MEMBER(sj_policy, allows_unmatched), SJ_WORDS(unmatched_words)},
    {"begin", SJ_KEY_WORD, SJ_MEMBER(sj_policy, begins_paused), SJ_WORDS(begin_words)},
    {"budget", SJ_KEY_CUSTOM, SJ_MEMBER(sj_policy, budget_percent), .parse = read_budget},
    {"thread_memory", SJ_KEY_BOOLEAN, SJ_MEMBER(sj_policy, counts_memory)},
    {"modules", SJ_KEY_OBJECT, SJ_MEMBER(sj_policy, selection), SJ_KEYS(module_keys)},
    {"functions", SJ_KEY_OBJECT, SJ_MEMBER(sj_policy, selection), SJ_KEYS(function_keys)},
    {"sources", SJ_KEY_OBJECT, SJ_MEMBER(sj_policy, selection), SJ_KEYS(source_keys)},
    {"calls", SJ_KEY_OBJECT, SJ_KEYS(call_keys)},
    {"values", SJ_KEY_CUSTOM, SJ_MEMBER(sj_policy, selection), .parse = sj_policy_read_values},
    {"profile", SJ_KEY_OBJECT, SJ_KEYS(profile_keys)},
    {"flight", SJ_KEY_OBJECT, SJ_KEYS(flight_keys)},
    {"triggers", SJ_KEY_CUSTOM, .parse = sj_policy_read_triggers},
    {"buffer", SJ_KEY_OBJECT, SJ_KEYS(buffer_keys)},
    {"zombies", SJ_KEY_CUSTOM, .parse = sj_policy_read_zombies},
    {"redact", SJ_KEY_OBJECT, SJ_MEMBER(sj_policy, redaction), SJ_KEYS(redact_keys)}};

static sj_status read_document(sj_policy_reader *reader, json_t *root);

/* Applies the shipped policy that the key "base" names. */
static sj_status read_base(sj_policy_reader *reader, json_t *root)
{
    json_t *value = json_object_get(root, "base");
    if (value == NULL) {
        return SJ_OK;
    }
    size_t count = 0;
    size_t index = 0;
    while (sj_policy_presets[count] != NULL) {
        count++;
    }
    sj_policy_enter(reader, "base", 0);
    SJ_TRY(sj_policy_word(reader, value, sj_policy_presets, count, &index));
    sj_policy_leave(reader);
    const char *text = sj_policy_preset(sj_policy_presets[index]);
    json_t *base = json_loads(text, 0, NULL);
    if (base == NULL) {
        return sj_fail(reader->error, SJ_ENOMEM, "out of memory");
    }
    const sj_status status = read_document(reader, base);
    json_decref(base);
    reader->policy->name[0] = '\0';
    return status;
}

static sj_status check_format(sj_policy_reader *reader, json_t *root)
{
    const json_t *value = json_object_get(root, "policy");
    if (json_is_object(root) && value == NULL) {
        return sj_policy_fail(reader, false,
                              "add \"policy\": %d, the version of the format; \"sojourn "
                              "policy show default\" prints a whole policy",
                              SJ_POLICY_FORMAT);
    }
    if (value != NULL && json_integer_value(value) != SJ_POLICY_FORMAT) {
        sj_policy_enter(reader, "policy", 0);
        return sj_policy_fail(reader, false, "this Sojourn reads policies of format %d",
                              SJ_POLICY_FORMAT);
    }
    return SJ_OK;
}

static sj_status read_document(sj_policy_reader *reader, json_t *root)
{
    enum { FIXED = sizeof(document_keys) / sizeof(document_keys[0]) };
    sj_policy_key all[FIXED + SJ_RUNTIMES];
    memcpy(all, document_keys, sizeof(document_keys));
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        all[FIXED + i] = (sj_policy_key){sj_runtimes[i]->name, SJ_KEY_CUSTOM,
                                         SJ_MEMBER(sj_policy, selection.runtimes[i]),
                                         .parse = sj_policy_read_runtime};
    }
    SJ_TRY(check_format(reader, root));
    SJ_TRY(read_base(reader, root));
    return sj_policy_object(reader, root, reader->policy, all, FIXED + SJ_RUNTIMES);
}

/* Rules about calls into libraries need these calls to be recorded. */
static sj_status check_imports(sj_policy_reader *reader)
{
    const sj_selection *selection = &reader->policy->selection;
    const size_t count = selection->values != NULL ? selection->values->count : 0;
    for (size_t i = 0; i < count && !selection->library_calls; i++) {
        const char *function = selection->values->items[i].function.text;
        if (strchr(function, '!') != NULL) {
            return sj_policy_fail(reader, false,
                                  "\"%.100s\" is about calls into libraries, which are recorded "
                                  "with --library-calls (\"modules\": {\"library_calls\": true}), "
                                  "in programs that `sojourn record` starts",
                                  function);
        }
    }
    return SJ_OK;
}

static sj_status check_budget(sj_policy_reader *reader)
{
    const sj_selection *selection = &reader->policy->selection;
    /* The budget counts and stops functions; with receivers, one function becomes many. */
    if (sj_selection_has_receivers(selection)) {
        return sj_policy_fail(reader, false,
                              "receivers are not recorded under a budget: remove one of the two");
    }
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        const sj_runtime *runtime = sj_runtimes[i];
        if (selection->runtimes[i].in_place && runtime->budget_obstacle != NULL) {
            return sj_policy_fail(
                reader, false, "\"engine\": \"%s\" keeps no budget, as %s: remove one of the two",
                runtime->engines[1], runtime->budget_obstacle);
        }
    }
    return SJ_OK;
}

/* Probes of counted calls write short records only, so other recordings are refused with them. If
 * calls are not counted, a list of timed functions means that "clock" was forgotten, unless the
 * document says "exact". */
static sj_status check_clock(sj_policy_reader *reader)
{
    const sj_policy *policy = reader->policy;
    const sj_zombie_settings *zombies = &policy->zombies;
    const char *runtime = sj_selection_names_methods(&policy->selection);
    if (!policy->counts_calls) {
        return policy->timed_count == 0 || reader->has_clock
                   ? SJ_OK
                   : sj_policy_fail(reader, false,
                                    "every call is timed: to choose functions (--timed, \"timed\") "
                                    "goes with --clock adaptive (\"calls\": {\"clock\": "
                                    "\"adaptive\"})");
    }
    if (policy->selection.library_calls) {
        return sj_policy_fail(reader, false,
                              "calls into libraries are all timed: remove --library-calls "
                              "(\"library_calls\") or --clock adaptive (\"clock\")");
    }
    if (runtime != NULL) {
        return sj_policy_fail(reader, false,
                              "with --clock adaptive (\"clock\": \"adaptive\") methods of %s are "
                              "not recorded; remove their options or the clock",
                              runtime);
    }
    if (zombies->one_in != 0 || zombies->counts != 0 || zombies->objects.is_on != 0) {
        return sj_policy_fail(reader, false,
                              "with --clock adaptive (\"clock\": \"adaptive\") freed memory is not "
                              "watched: remove --zombies (\"zombies\") or the clock");
    }
    return SJ_OK;
}

/* True for Class:Method. Native names do not look like that: in Objective-C and Swift, colons
 * follow a bracket. */
static bool names_mono_method(const char *text)
{
    const char *colon = text + strcspn(text, ":[(");
    return *colon == ':' && colon != text && colon[1] != ':' && strchr("/-+!", text[0]) == NULL;
}

/* Refuses rules about Mono methods that cannot be recorded. */
static sj_status check_mono(sj_policy_reader *reader)
{
    const sj_value_rules *rules = reader->policy->selection.values;
    for (size_t i = 0; rules != NULL && i < rules->count; i++) {
        const sj_value_rule *rule = &rules->items[i];
        const char *name = rule->function.text;
        if (!names_mono_method(name)) {
            continue;
        }
        if (rule->is_memory) {
            return sj_policy_fail(reader, false,
                                  "memory is counted in calls of native functions: the Mono method "
                                  "%s can have \"cpu\" only",
                                  name);
        }
        if (rule->is_source && !rule->is_cpu && !rule->is_typed) {
            return sj_policy_fail(
                reader, false,
                "signatures apply to native functions and Java methods only; for "
                "the Mono method %s, write only the name to record all values, or "
                "one value, as \"%s(1:long)\"",
                name, name);
        }
    }
    return SJ_OK;
}

/* Finds errors that only the combination of keys shows. */
static sj_status check_whole(sj_policy_reader *reader)
{
    const sj_policy *policy = reader->policy;
    SJ_TRY(check_imports(reader));
    SJ_TRY(check_clock(reader));
    SJ_TRY(check_mono(reader));
    for (size_t i = 0; i < policy->trigger_count; i++) {
        if ((policy->triggers[i].actions & SJ_ACTION_DUMP) != 0 &&
            policy->mode != SJ_POLICY_FLIGHT) {
            return sj_policy_fail(reader, false,
                                  "trigger %zu dumps, which needs \"mode\": \"flight\"", i);
        }
    }
    if (policy->selection.values != NULL && policy->mode == SJ_POLICY_PROFILE) {
        return sj_policy_fail(
            reader, false,
            "a profile has no single calls, so no values: \"mode\" must be \"trace\" "
            "or \"flight\"");
    }
    if (sj_value_rules_change(policy->selection.values) && policy->minimum_ns != 0) {
        return sj_policy_fail(
            reader, false,
            "a call that a rule changes is kept, however short it is, and others wait for a "
            "\"minimum\": remove one of the two");
    }
    return policy->budget_percent > 0 ? check_budget(reader) : SJ_OK;
}

static void set_defaults(sj_policy *policy)
{
    *policy = (sj_policy){
        .version = 1,
        .resolution_ns = SJ_POLICY_RESOLUTION_NS,
        .profile_interval_ns = UINT64_C(10000000000),
        .flight_before_ns = UINT64_C(10000000000),
        .flight_after_ns = UINT64_C(1000000000),
        .flight_bytes = UINT64_C(64) << 20,
        .zombies = {.stack_bytes = 2048,
                    .reports_per_minute = 60,
                    .objects = {.stack_bytes = 512, .queue_objects = 20000, .queue_kib = 16 << 10}},
        .zombie_sessions_percent = 100};
}

sj_status sj_policy_parse(const char *text, size_t size, const char *origin, sj_policy *policy,
                          sj_error *error)
{
    json_error_t problem;
    set_defaults(policy);
    if (size > SJ_POLICY_MAX_BYTES) {
        return sj_fail(error, SJ_ELIMIT, "%.200s: a policy has at most %d bytes", origin,
                       SJ_POLICY_MAX_BYTES);
    }
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &problem);
    if (root == NULL) {
        return sj_fail(error, SJ_EINVAL, "%.200s:%d:%d: %s", origin,
                       problem.line > 0 ? problem.line : 1, problem.column > 0 ? problem.column : 1,
                       problem.text);
    }
    sj_policy_reader reader = {
        .text = text, .size = size, .origin = origin, .policy = policy, .error = error};
    sj_status status = read_document(&reader, root);
    json_decref(root);
    if (status == SJ_OK) {
        status = check_whole(&reader);
    }
    if (status == SJ_OK && policy->selection.values != NULL) {
        status = sj_value_rules_redact(policy->selection.values, &policy->redaction) == SJ_OK
                     ? SJ_OK
                     : sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    if (status == SJ_OK) {
        policy->document = strndup(text, size);
        status = policy->document != NULL ? SJ_OK : sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    if (status != SJ_OK) {
        sj_policy_free(policy);
    }
    return status;
}

static void free_patterns(sj_pattern *patterns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sj_pattern_free(&patterns[i]);
    }
}

size_t sj_policy_missed(const sj_policy *policy, bool attached, const char *texts[SJ_POLICY_MISSED])
{
    size_t count = 0;
    if (attached && sj_policy_watches_loops(policy)) {
        texts[count++] = SJ_POLICY_LOOPS_UNSEEN;
    }
    if (attached && policy->selection.library_calls) {
        texts[count++] = SJ_POLICY_LIBRARIES_UNBOUND;
    }
    return count;
}

void sj_policy_free(sj_policy *policy)
{
    free(policy->document);
    sj_selection_free(&policy->selection);
    free_patterns(policy->threads, SJ_POLICY_THREADS);
    free_patterns(policy->timed, SJ_POLICY_TIMED);
    free_patterns(policy->redaction.values, SJ_REDACTED_FUNCTIONS);
    for (size_t i = 0; i < SJ_POLICY_SAMPLED; i++) {
        sj_pattern_free(&policy->sampled[i].function);
    }
    for (size_t i = 0; i < SJ_POLICY_TRIGGERS; i++) {
        sj_pattern_free(&policy->triggers[i].subject);
        sj_pattern_free(&policy->triggers[i].loop);
    }
    *policy = (sj_policy){0};
}
