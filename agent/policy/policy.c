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

static sj_status read_format(sj_policy_reader *reader, json_t *value)
{
    if (!json_is_integer(value) || json_integer_value(value) != SJ_POLICY_FORMAT) {
        return sj_policy_fail(reader, false, "this Sojourn reads policies of format %d",
                              SJ_POLICY_FORMAT);
    }
    return SJ_OK;
}

static sj_status read_name(sj_policy_reader *reader, json_t *value)
{
    const char *text = json_string_value(value);
    if (text == NULL || strlen(text) >= SJ_POLICY_NAME_BYTES) {
        return sj_policy_fail(reader, false, "a text of at most %d bytes is needed",
                              SJ_POLICY_NAME_BYTES - 1);
    }
    snprintf(reader->policy->name, sizeof(reader->policy->name), "%s", text);
    return SJ_OK;
}

static sj_status read_description(sj_policy_reader *reader, json_t *value)
{
    return json_is_string(value) ? SJ_OK : sj_policy_fail(reader, false, "a text is needed");
}

static sj_status read_version(sj_policy_reader *reader, json_t *value)
{
    uint64_t number = 0;
    SJ_TRY(sj_policy_number(reader, value, 1, UINT32_MAX, &number));
    reader->policy->version = (uint32_t)number;
    return SJ_OK;
}

static sj_status read_mode(sj_policy_reader *reader, json_t *value)
{
    size_t index = 0;
    SJ_TRY(sj_policy_word(reader, value, mode_words, 3, &index));
    reader->policy->mode = (sj_policy_mode)index;
    return SJ_OK;
}

static sj_status read_begin(sj_policy_reader *reader, json_t *value)
{
    static const char *const words[] = {"at_once", "triggered"};
    size_t index = 0;
    SJ_TRY(sj_policy_word(reader, value, words, 2, &index));
    reader->policy->begins_paused = index == 1;
    return SJ_OK;
}

static sj_status read_thread_memory(sj_policy_reader *reader, json_t *value)
{
    return sj_policy_boolean(reader, value, &reader->policy->counts_memory);
}

static sj_status read_unmatched(sj_policy_reader *reader, json_t *value)
{
    static const char *const words[] = {"refuse", "allow"};
    size_t index = 0;
    SJ_TRY(sj_policy_word(reader, value, words, 2, &index));
    reader->policy->allows_unmatched = index == 1;
    return SJ_OK;
}

static sj_status read_budget(sj_policy_reader *reader, json_t *value)
{
    const char *text = json_string_value(value);
    char *end = NULL;
    double percent = json_is_number(value) ? json_number_value(value) : -1;
    if (json_is_null(value)) {
        reader->policy->budget_percent = 0;
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
    reader->policy->budget_percent = percent;
    return SJ_OK;
}

static sj_status read_modules_include(sj_policy_reader *reader, json_t *value)
{
    sj_selection *selection = &reader->policy->selection;
    return sj_policy_patterns(reader, value, selection->modules, SJ_SELECTION_GLOBS,
                              &selection->module_count);
}

static sj_status read_modules_exclude(sj_policy_reader *reader, json_t *value)
{
    sj_selection *selection = &reader->policy->selection;
    return sj_policy_patterns(reader, value, selection->modules_excluded, SJ_SELECTION_GLOBS,
                              &selection->modules_excluded_count);
}

static sj_status read_modules_system(sj_policy_reader *reader, json_t *value)
{
    return sj_policy_boolean(reader, value, &reader->policy->selection.all_libraries);
}

static sj_status read_library_calls(sj_policy_reader *reader, json_t *value)
{
    return sj_policy_boolean(reader, value, &reader->policy->selection.library_calls);
}

static sj_status read_modules(sj_policy_reader *reader, json_t *value)
{
    static const sj_policy_key keys[] = {{"include", read_modules_include},
                                         {"exclude", read_modules_exclude},
                                         {"system", read_modules_system},
                                         {"library_calls", read_library_calls}};
    return sj_policy_object(reader, value, keys, 4);
}

static sj_status read_functions_include(sj_policy_reader *reader, json_t *value)
{
    sj_selection *selection = &reader->policy->selection;
    return sj_policy_patterns(reader, value, selection->functions, SJ_SELECTION_GLOBS,
                              &selection->function_count);
}

static sj_status read_functions_exclude(sj_policy_reader *reader, json_t *value)
{
    sj_selection *selection = &reader->policy->selection;
    return sj_policy_patterns(reader, value, selection->excluded, SJ_SELECTION_GLOBS,
                              &selection->excluded_count);
}

static sj_status read_functions(sj_policy_reader *reader, json_t *value)
{
    static const sj_policy_key keys[] = {{"include", read_functions_include},
                                         {"exclude", read_functions_exclude}};
    return sj_policy_object(reader, value, keys, 2);
}

static sj_status read_sources_include(sj_policy_reader *reader, json_t *value)
{
    sj_selection *selection = &reader->policy->selection;
    return sj_policy_patterns(reader, value, selection->sources, SJ_SELECTION_GLOBS,
                              &selection->source_count);
}

static sj_status read_sources_exclude(sj_policy_reader *reader, json_t *value)
{
    sj_selection *selection = &reader->policy->selection;
    return sj_policy_patterns(reader, value, selection->sources_excluded, SJ_SELECTION_GLOBS,
                              &selection->sources_excluded_count);
}

static sj_status read_sources(sj_policy_reader *reader, json_t *value)
{
    static const sj_policy_key keys[] = {{"include", read_sources_include},
                                         {"exclude", read_sources_exclude}};
    return sj_policy_object(reader, value, keys, 2);
}

static sj_status read_depth(sj_policy_reader *reader, json_t *value)
{
    uint64_t number = 0;
    SJ_TRY(sj_policy_number(reader, value, 1, 1000000, &number));
    reader->policy->max_depth = (uint32_t)number;
    return SJ_OK;
}

static sj_status read_minimum(sj_policy_reader *reader, json_t *value)
{
    return sj_policy_time(reader, value, 0, &reader->policy->minimum_ns);
}

/* A text that is not a time may be the other allowed word, which the error about times does not
 * name. */
static sj_status read_resolution(sj_policy_reader *reader, json_t *value)
{
    const char *text = json_string_value(value);
    uint64_t ns = 0;
    if (text != NULL && strcmp(text, "exact") == 0) {
        reader->policy->resolution_ns = 0;
        return SJ_OK;
    }
    if (text == NULL || !sj_duration_parse(text, &ns) || ns == 0 || ns > COARSEST_NS) {
        return sj_policy_fail(reader, false,
                              "\"exact\" or a time from \"1ns\" to \"1ms\" is needed");
    }
    reader->policy->resolution_ns = ns;
    return SJ_OK;
}

static sj_status read_clock(sj_policy_reader *reader, json_t *value)
{
    const char *text = json_string_value(value);
    if (text == NULL || (strcmp(text, "exact") != 0 && strcmp(text, "adaptive") != 0)) {
        return sj_policy_fail(reader, false, "\"exact\" or \"adaptive\" is needed");
    }
    reader->policy->counts_calls = strcmp(text, "adaptive") == 0;
    reader->has_clock = true;
    return SJ_OK;
}

static sj_status read_timed(sj_policy_reader *reader, json_t *value)
{
    return sj_policy_patterns(reader, value, reader->policy->timed, SJ_POLICY_TIMED,
                              &reader->policy->timed_count);
}

static sj_status read_threads(sj_policy_reader *reader, json_t *value)
{
    return sj_policy_patterns(reader, value, reader->policy->threads, SJ_POLICY_THREADS,
                              &reader->policy->thread_count);
}

static sj_status read_sampled_function(sj_policy_reader *reader, json_t *value)
{
    return sj_policy_pattern(reader, value,
                             &reader->policy->sampled[reader->policy->sampled_count].function);
}

static sj_status read_sampled_n(sj_policy_reader *reader, json_t *value)
{
    uint64_t number = 0;
    SJ_TRY(sj_policy_number(reader, value, 1, 1000000000, &number));
    reader->policy->sampled[reader->policy->sampled_count].n = (uint32_t)number;
    return SJ_OK;
}

static sj_status read_one_in(sj_policy_reader *reader, json_t *value)
{
    static const sj_policy_key keys[] = {{"function", read_sampled_function},
                                         {"n", read_sampled_n}};
    sj_policy *policy = reader->policy;
    if (!json_is_array(value) || json_array_size(value) > SJ_POLICY_SAMPLED) {
        return sj_policy_fail(reader, false, "a list [ ] of at most %d objects is needed",
                              SJ_POLICY_SAMPLED);
    }
    for (size_t i = 0; i < policy->sampled_count; i++) {
        sj_pattern_free(&policy->sampled[i].function);
    }
    memset(policy->sampled, 0, sizeof(policy->sampled));
    policy->sampled_count = 0;
    for (size_t i = 0; i < json_array_size(value); i++) {
        sj_policy_enter(reader, NULL, i);
        SJ_TRY(sj_policy_object(reader, json_array_get(value, i), keys, 2));
        policy->sampled_count++;
        if (policy->sampled[i].function.text == NULL || policy->sampled[i].n == 0) {
            return sj_policy_fail(reader, false, "both \"function\" and \"n\" are needed");
        }
        sj_policy_leave(reader);
    }
    return SJ_OK;
}

static sj_status read_calls(sj_policy_reader *reader, json_t *value)
{
    static const sj_policy_key keys[] = {{"depth", read_depth},           {"minimum", read_minimum},
                                         {"resolution", read_resolution}, {"clock", read_clock},
                                         {"timed", read_timed},           {"threads", read_threads},
                                         {"one_in", read_one_in}};
    return sj_policy_object(reader, value, keys, 7);
}

static sj_status read_interval(sj_policy_reader *reader, json_t *value)
{
    return sj_policy_time(reader, value, 100000000, &reader->policy->profile_interval_ns);
}

static sj_status read_window(sj_policy_reader *reader, json_t *value)
{
    return sj_policy_time(reader, value, 1, &reader->policy->profile_window_ns);
}

static sj_status read_profile(sj_policy_reader *reader, json_t *value)
{
    static const sj_policy_key keys[] = {{"interval", read_interval}, {"window", read_window}};
    return sj_policy_object(reader, value, keys, 2);
}

static sj_status read_before(sj_policy_reader *reader, json_t *value)
{
    return sj_policy_time(reader, value, 1, &reader->policy->flight_before_ns);
}

static sj_status read_after(sj_policy_reader *reader, json_t *value)
{
    return sj_policy_time(reader, value, 0, &reader->policy->flight_after_ns);
}

static sj_status read_memory(sj_policy_reader *reader, json_t *value)
{
    return sj_policy_size(reader, value, UINT64_C(1) << 20, UINT64_C(1) << 40,
                          &reader->policy->flight_bytes);
}

static sj_status read_flight(sj_policy_reader *reader, json_t *value)
{
    static const sj_policy_key keys[] = {
        {"before", read_before}, {"after", read_after}, {"memory", read_memory}};
    return sj_policy_object(reader, value, keys, 3);
}

static sj_status read_chunks(sj_policy_reader *reader, json_t *value)
{
    uint64_t number = 0;
    SJ_TRY(sj_policy_number(reader, value, 1, 64, &number));
    reader->policy->chunks_per_thread = (uint32_t)number;
    return SJ_OK;
}

static sj_status read_when_full(sj_policy_reader *reader, json_t *value)
{
    static const char *const words[] = {"block", "drop"};
    size_t index = 0;
    SJ_TRY(sj_policy_word(reader, value, words, 2, &index));
    reader->policy->drop_when_full = index == 1;
    return SJ_OK;
}

static sj_status read_block_ms(sj_policy_reader *reader, json_t *value)
{
    uint64_t number = 0;
    SJ_TRY(sj_policy_number(reader, value, 1, 10000, &number));
    reader->policy->block_ms = (uint32_t)number;
    return SJ_OK;
}

static sj_status read_buffer(sj_policy_reader *reader, json_t *value)
{
    static const sj_policy_key keys[] = {
        {"chunks", read_chunks}, {"when_full", read_when_full}, {"block_ms", read_block_ms}};
    return sj_policy_object(reader, value, keys, 3);
}

static sj_status read_document(sj_policy_reader *reader, json_t *root);

/* Applies the document on top of a shipped one. */
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

/* Finds the runtime by its key. */
static sj_status read_runtime(sj_policy_reader *reader, json_t *value)
{
    const char *key = reader->path[reader->depth - 1].key;
    size_t runtime = 0;
    while (runtime + 1 < SJ_RUNTIMES && strcmp(sj_runtimes[runtime]->name, key) != 0) {
        runtime++;
    }
    return sj_policy_read_runtime(reader, runtime, value);
}

static sj_status read_document(sj_policy_reader *reader, json_t *root)
{
    static const sj_policy_key keys[] = {{"policy", read_format},
                                         {"name", read_name},
                                         {"description", read_description},
                                         {"version", read_version},
                                         {"base", NULL},
                                         {"mode", read_mode},
                                         {"unmatched", read_unmatched},
                                         {"begin", read_begin},
                                         {"budget", read_budget},
                                         {"thread_memory", read_thread_memory},
                                         {"modules", read_modules},
                                         {"functions", read_functions},
                                         {"sources", read_sources},
                                         {"calls", read_calls},
                                         {"values", sj_policy_read_values},
                                         {"profile", read_profile},
                                         {"flight", read_flight},
                                         {"triggers", sj_policy_read_triggers},
                                         {"buffer", read_buffer},
                                         {"zombies", sj_policy_read_zombies}};
    enum { FIXED = sizeof(keys) / sizeof(keys[0]) };
    sj_policy_key all[FIXED + SJ_RUNTIMES];
    memcpy(all, keys, sizeof(keys));
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        all[FIXED + i] = (sj_policy_key){sj_runtimes[i]->name, read_runtime};
    }
    if (json_is_object(root) && json_object_get(root, "policy") == NULL) {
        return sj_policy_fail(reader, false, "the key \"policy\": %d is missing", SJ_POLICY_FORMAT);
    }
    SJ_TRY(read_base(reader, root));
    return sj_policy_object(reader, root, all, FIXED + SJ_RUNTIMES);
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

/* Counted calls exclude everything whose probes write only whole records, and the watch of freed
 * memory. If calls are not counted, a list of timed functions means that "clock" was forgotten,
 * unless the document says "exact". */
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
        return sj_policy_fail(
            reader, false,
            "with --clock adaptive (\"clock\": \"adaptive\") methods of %s are not "
            "recorded: remove what is said of them or the clock",
            runtime);
    }
    if (zombies->one_in != 0 || zombies->counts != 0 || zombies->objects.is_on != 0) {
        return sj_policy_fail(reader, false,
                              "with --clock adaptive (\"clock\": \"adaptive\") freed memory is not "
                              "watched: remove --zombies (\"zombies\") or the clock");
    }
    return SJ_OK;
}

/* True for Class:Method. The name of a native function never looks like that: in Objective-C and
 * Swift, colons follow a bracket. */
static bool names_mono_method(const char *text)
{
    const char *colon = text + strcspn(text, ":[(");
    return *colon == ':' && colon != text && colon[1] != ':' && strchr("/-+!", text[0]) == NULL;
}

/* Refuses what cannot be recorded of a Mono method. */
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
        if (rule->is_source && !rule->is_cpu) {
            return sj_policy_fail(reader, false,
                                  "signatures and types are read of native functions%s; of the "
                                  "Mono method %s name one value, as \"%s(1:long)\"",
                                  rule->is_typed ? "" : " and Java methods", name, name);
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
        .zombies = {.slots = 4096,
                    .stack_bytes = 2048,
                    .reports_per_minute = 60,
                    .memory_kib = 64 << 10,
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
    for (size_t i = 0; i < SJ_POLICY_SAMPLED; i++) {
        sj_pattern_free(&policy->sampled[i].function);
    }
    for (size_t i = 0; i < SJ_POLICY_TRIGGERS; i++) {
        sj_pattern_free(&policy->triggers[i].subject);
        sj_pattern_free(&policy->triggers[i].loop);
    }
    *policy = (sj_policy){0};
}
