/* Design notes
 *
 * A plan holds all functions of its module, and marks those that are not wanted. So another
 * selection only changes marks. A process that lacks hooks gets a second plan of the same module,
 * in which all functions that it has are marked as not wanted. Both derive from one plan, so that
 * their patches never overlap. */
#include "agent/planner/plan_file.h"
#include "agent/registry/module_plan.h"
#include "agent/registry/registry_internal.h"
#include "agent/session/module_frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Replaces a module's counts by skip reason with the counts of its new marks. */
static void count_marks(sj_registry *registry, sj_registry_module *entry,
                        const sj_plan_header *plan)
{
    sj_registry_counters *counters = &registry->counters;
    const sj_plan_function *functions = sj_plan_functions(plan);
    uint32_t skips[SJ_REGISTRY_SKIPS] = {0};
    for (uint32_t i = 0; i < plan->function_count; i++) {
        skips[functions[i].skip % SJ_REGISTRY_SKIPS]++;
    }
    for (size_t i = 1; i < SJ_REGISTRY_SKIPS; i++) {
        if (entry->counted && i != SJ_SKIP_COLD_PART) {
            /* modulo 2^64 if the count falls */
            const uint64_t more = (uint64_t)skips[i] - entry->skips[i];
            counters->skips[i] += more;
            counters->hooked -= more;
        }
        entry->skips[i] = skips[i];
    }
    counters->filtered = counters->skips[SJ_SKIP_FILTERED];
}

static void set_names(sj_function_rules *rules, const sj_registry_module *entry,
                      const sj_plan_header *plan, sj_function_keys *keys)
{
    for (uint32_t i = 0; i < plan->function_count && rules != NULL; i++) {
        sj_function_rules_name(rules, entry->first_function + i, sj_module_key(keys, plan, i));
    }
}

static void record_states(const sj_registry_module *entry, const sj_plan_header *plan,
                          uint8_t *states)
{
    const sj_plan_function *functions = sj_plan_functions(plan);
    for (uint32_t i = 0; i < plan->function_count; i++) {
        if (functions[i].technique != SJ_TECHNIQUE_NONE) {
            states[entry->first_function + i] =
                sj_plan_is_hooked(&functions[i]) ? SJ_FUNCTION_WANTED : SJ_FUNCTION_UNWANTED;
        }
    }
}

/* Returns the pid of a living process that has the module; 0: none. */
static pid_t find_living(const sj_registry *registry, const sj_registry_module *entry)
{
    const uint32_t number = (uint32_t)(entry - registry->modules) + 1;
    for (size_t i = registry->living_count; i-- > 0;) {
        if (sj_registry_has_mapping(registry, registry->living[i].number, number)) {
            return registry->living[i].pid;
        }
    }
    return 0;
}

/* True if the selection wants a module in one of its living processes. */
static bool wants_entry(sj_registry *registry, const sj_selection *selection,
                        const sj_registry_module *entry)
{
    const uint32_t number = (uint32_t)(entry - registry->modules) + 1;
    for (size_t i = 0; i < registry->living_count; i++) {
        const uint64_t process = registry->living[i].number;
        if (sj_registry_has_mapping(registry, process, number) &&
            sj_registry_wants_module(registry, selection, process, entry->path, entry->is_main)) {
            return true;
        }
    }
    return sj_selection_wants_module(selection, entry->path, entry->is_main);
}

/* Counts, for new rules by number or signature, the functions whose types were recorded before: the
 * values of such rules get no names there. */
static void count_settled(const sj_registry_module *entry, const sj_plan_header *plan,
                          sj_function_keys *keys, sj_value_rules *values)
{
    for (uint32_t i = 0; values != NULL && i < plan->function_count; i++) {
        if (sj_value_rules_typed(values, entry->first_function + i) != NULL) {
            const sj_rule_set matched = sj_value_rules_match(values, sj_module_key(keys, plan, i));
            const sj_rule_set fresh = sj_value_rules_fresh_of(values, &matched);
            const sj_rule_set numbered = sj_value_rules_numbered_of(values, &fresh);
            sj_value_rules_count_settled(values, &numbered);
        }
    }
}

static sj_status select_module(sj_registry *registry, sj_registry_module *entry,
                               const sj_selection *selection, sj_function_rules *rules,
                               sj_function_states *states)
{
    sj_plan plan = {0};
    bool changed = false;
    uint32_t renewed = 0;
    char in_root[PATH_MAX];
    sj_found_types types = {0};
    sj_function_keys keys;
    const sj_module_plan_options choice = {
        .selection = selection,
        .rules = rules,
        .path = sj_registry_find_file(registry, entry->path, in_root),
        .is_main = entry->is_main,
        .types = &types,
        .pid = find_living(registry, entry)};
    if (rules != NULL) {
        sj_function_rules_module(rules, entry->path);
    }
    SJ_TRY(sj_plan_map(entry->plan_path, &plan));
    sj_module_keys_init(&keys, choice.path);
    const bool is_wanted = wants_entry(registry, selection, entry);
    sj_status status = sj_module_plan_select(&choice, is_wanted, &plan, &changed);
    if (status == SJ_OK) {
        status = sj_module_plan_add_values(&choice, is_wanted, &plan,
                                           states->renewed + entry->first_function, &renewed);
        states->renewed_count += renewed;
    }
    if (status == SJ_OK) {
        count_settled(entry, plan.header, &keys, selection->values);
    }
    if (status == SJ_OK && types.count != 0) { /* before hooks record by them */
        status = sj_registry_keep_types(registry, entry, plan.header, selection->values, &types);
    }
    if (status == SJ_OK && (changed || renewed != 0)) {
        status = sj_plan_write(&plan, entry->plan_path, NULL);
    }
    if (status == SJ_OK && changed) {
        count_marks(registry, entry, plan.header);
        status =
            sj_module_frames_send(registry->options.writer, plan.header, entry->path,
                                  (uint32_t)(entry - registry->modules) + 1, entry->first_function);
    }
    if (status == SJ_OK) {
        set_names(rules, entry, plan.header, &keys);
        record_states(entry, plan.header, states->states);
    }
    sj_found_types_deinit(&types);
    sj_plan_free(&plan);
    return status;
}

void sj_function_states_deinit(sj_function_states *states)
{
    free(states->states);
    free(states->renewed);
    *states = (sj_function_states){0};
}

/* Copies to `states` the renewals that processes have not applied yet. */
static void copy_renewed(const sj_registry *registry, sj_function_states *states)
{
    for (uint32_t id = 0; id < registry->renewed_count; id++) {
        states->renewed[id] = registry->renewed[id];
        states->renewed_count += registry->renewed[id] != 0;
    }
}

/* Stores which renewals processes have to apply. Also needed after a failed selection, because its
 * written plans do not show them again. */
static sj_status keep_renewed(sj_registry *registry, const sj_function_states *states)
{
    uint8_t *renewed = states->renewed_count != 0 ? calloc(states->count, 1) : NULL;
    if (states->renewed_count != 0 && renewed == NULL) {
        return SJ_ENOMEM;
    }
    if (renewed != NULL) {
        memcpy(renewed, states->renewed, states->count);
    }
    free(registry->renewed);
    registry->renewed = renewed;
    registry->renewed_count = renewed != NULL ? states->count : 0;
    return SJ_OK;
}

void sj_registry_settle_renewed(sj_registry *registry)
{
    pthread_mutex_lock(&registry->mutex);
    free(registry->renewed);
    registry->renewed = NULL;
    registry->renewed_count = 0;
    pthread_mutex_unlock(&registry->mutex);
}

sj_status sj_registry_select(sj_registry *registry, const sj_selection *selection,
                             sj_function_rules *rules, sj_function_states *states)
{
    sj_status status = SJ_OK;
    pthread_mutex_lock(&registry->mutex);
    *states = (sj_function_states){
        .states = calloc(registry->next_function, 1),
        .renewed = calloc(registry->next_function, 1),
        .count = registry->next_function,
        .other_modules =
            (selection->library_calls && !registry->options.selection->library_calls) ||
            !sj_selection_same_modules(registry->options.selection, selection)};
    status = states->states != NULL && states->renewed != NULL ? SJ_OK : SJ_ENOMEM;
    if (status == SJ_OK) {
        copy_renewed(registry, states);
    }
    for (size_t i = 0; i < registry->module_count && status == SJ_OK; i++) {
        /* Methods that a runtime named have no plan and do not change. */
        if (registry->modules[i].plan_path[0] != '\0') {
            status = select_module(registry, &registry->modules[i], selection, rules, states);
        }
    }
    for (size_t i = 0; i < registry->container_count && status == SJ_OK; i++) {
        status = sj_registry_select_container(registry, i, selection, rules, states->states);
    }
    if (states->renewed != NULL) {
        const sj_status kept = keep_renewed(registry, states);
        status = status == SJ_OK ? kept : status;
    }
    if (status == SJ_OK) {
        registry->options.selection = selection;
        registry->options.rules = rules;
        sj_registry_name_classes(registry);
        sj_value_rules_settle(selection->values);
    }
    pthread_mutex_unlock(&registry->mutex);
    return status;
}

sj_status sj_registry_report_missed(sj_registry *registry, uint64_t process,
                                    const uint32_t *functions, size_t count, size_t *reported)
{
    sj_status status = SJ_OK;
    size_t next = 0;
    *reported = 0;
    pthread_mutex_lock(&registry->mutex);
    for (size_t i = 0; i < registry->module_count && status == SJ_OK; i++) {
        const sj_registry_module *entry = &registry->modules[i];
        sj_link_failure *failures = calloc(count + 1, sizeof(*failures));
        size_t found = 0;
        status = failures != NULL ? SJ_OK : SJ_ENOMEM;
        for (; next < count && functions[next] < entry->first_function + entry->function_count;
             next++) {
            if (status == SJ_OK && functions[next] >= entry->first_function) {
                failures[found++] =
                    (sj_link_failure){.function = functions[next] - entry->first_function,
                                      .skip = SJ_SKIP_CODE_DIFFERS};
            }
        }
        if (found != 0 && sj_registry_has_mapping(registry, process, (uint32_t)i + 1)) {
            *reported += found;
            status = sj_registry_send_unhooked(registry, process, entry, failures, found);
        }
        free(failures);
    }
    pthread_mutex_unlock(&registry->mutex);
    return status;
}

void sj_registry_begin_review(sj_registry *registry, uint64_t process, const uint8_t *prepared,
                              uint32_t count)
{
    pthread_mutex_lock(&registry->mutex);
    registry->reviewed = process;
    registry->prepared = prepared;
    registry->prepared_count = count;
    pthread_mutex_unlock(&registry->mutex);
}

void sj_registry_end_review(sj_registry *registry)
{
    sj_registry_begin_review(registry, 0, NULL, 0);
}

/* Selects the functions of a module that are wanted and have no hooks in a process. */
typedef struct missing_functions {
    const sj_registry *registry;
    const sj_plan_function *functions;
    uint32_t first_function;
    uint32_t at; /* index in the plan */
    uint32_t count;
} missing_functions;

static bool is_missing(void *context, const char *name, uint64_t offset, uint32_t size_bytes)
{
    missing_functions *missing = context;
    const sj_plan_function *function = &missing->functions[missing->at];
    const uint32_t id = missing->first_function + missing->at++;
    (void)name;
    (void)offset;
    (void)size_bytes;
    const bool is_added = sj_plan_is_hooked(function) && (id >= missing->registry->prepared_count ||
                                                          missing->registry->prepared[id] == 0);
    missing->count += is_added;
    return is_added;
}

/* True if rules newly name functions of a module as callers. Agents learn the addresses of these
 * from a plan. */
static bool has_new_callers(const sj_registry *registry, const sj_registry_module *entry)
{
    const uint32_t end = entry->first_function + entry->function_count;
    for (uint32_t id = entry->first_function; id < end && id < registry->renewed_count; id++) {
        if ((registry->renewed[id] & SJ_RENEWAL_CALLER) != 0) {
            return true;
        }
    }
    return false;
}

/* Writes the plan of the missing functions beside the module's plan. */
static sj_status write_missing(const sj_registry *registry, const sj_registry_module *entry,
                               char *path, size_t capacity)
{
    sj_plan plan = {0};
    sj_plan whole = {0};
    SJ_TRY(sj_plan_map(entry->plan_path, &whole));
    sj_status status = sj_plan_map(entry->plan_path, &plan);
    missing_functions missing = {.registry = registry,
                                 .functions = sj_plan_functions(whole.header),
                                 .first_function = entry->first_function};
    if (status == SJ_OK) {
        status = sj_plan_select(&plan, is_missing, &missing, NULL);
    }
    if (status == SJ_OK && missing.count == 0 && !has_new_callers(registry, entry)) {
        status = SJ_EUNSUPPORTED;
    }
    if (status == SJ_OK) {
        const int written = snprintf(path, capacity, "%s.more", entry->plan_path);
        status = written > 0 && (size_t)written < capacity ? sj_plan_write(&plan, path, NULL)
                                                           : SJ_ELIMIT;
    }
    sj_plan_free(&plan);
    sj_plan_free(&whole);
    return status;
}

sj_status sj_registry_review_module(sj_registry *registry, const sj_plan_request *request,
                                    sj_plan_reply *reply)
{
    sj_registry_module *entry = NULL;
    SJ_TRY(sj_registry_read_classes(registry, request->process, request->module, request->path));
    pthread_mutex_lock(&registry->mutex);
    sj_status status =
        registry->reviewed == request->process && request->process != 0 ? SJ_OK : SJ_EUNSUPPORTED;
    if (status == SJ_OK) {
        status = sj_registry_plan_locked(registry, request, &entry);
    }
    if (status == SJ_OK) {
        reply->first_function = entry->first_function;
        status = write_missing(registry, entry, reply->plan_path, sizeof(reply->plan_path));
    }
    pthread_mutex_unlock(&registry->mutex);
    return status;
}

sj_status sj_registry_plan_imports(sj_registry *registry, const sj_plan_request *request,
                                   sj_plan_reply *reply)
{
    sj_registry_module *entry = NULL;
    pthread_mutex_lock(&registry->mutex);
    sj_status status = sj_registry_plan_imports_locked(registry, request, &entry);
    if (status == SJ_OK) {
        reply->first_function = entry->first_function;
        if (registry->reviewed == request->process) {
            status = write_missing(registry, entry, reply->plan_path, sizeof(reply->plan_path));
        } else {
            snprintf(reply->plan_path, sizeof(reply->plan_path), "%s", entry->plan_path);
        }
    }
    pthread_mutex_unlock(&registry->mutex);
    return status;
}

uint32_t sj_registry_present_runtimes(sj_registry *registry, uint32_t runtimes)
{
    uint32_t changing = 0;
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        const sj_runtime *runtime = sj_runtimes[i];
        changing |= runtime->filters_classes ? runtime->system_bit | runtime->lineage_bit : 0;
    }
    pthread_mutex_lock(&registry->mutex);
    const sj_selection *selection = registry->options.selection;
    const uint32_t wanted = sj_selection_runtime_bits(selection) & changing;
    const uint32_t imports = selection->library_calls ? SJ_LINK_RUNTIME_LIBRARY_CALLS : 0;
    pthread_mutex_unlock(&registry->mutex);
    return (runtimes & ~changing) | wanted | imports;
}
