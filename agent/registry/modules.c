#include "agent/abi/record.h"
#include "agent/host/clock.h"
#include "agent/planner/text_coverage.h"
#include "agent/registry/map_globals_report.h"
#include "agent/registry/method_group.h"
#include "agent/registry/module_plan.h"
#include "agent/registry/registry_internal.h"
#include "agent/registry/types_report.h"
#include "agent/session/module_frames.h"
#include "proto/base/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* True if the program's file has no path: the file was removed, or is a memfd. /proc/PID/exe still
 * opens the file. */
static bool has_no_path(const sj_link_module *module, const char *path)
{
    static const char ending[] = " (deleted)";
    const size_t length = strlen(path);
    return module->is_main != 0 && length >= sizeof(ending) &&
           strcmp(path + length - (sizeof(ending) - 1), ending) == 0;
}

static sj_registry_module *find_module(sj_registry *registry, const sj_link_module *module,
                                       const char *path, bool only_imports)
{
    for (size_t i = 0; i < registry->module_count; i++) {
        sj_registry_module *entry = &registry->modules[i];
        if (entry->build_id_bytes == module->build_id_bytes &&
            memcmp(entry->build_id, module->build_id, module->build_id_bytes) == 0 &&
            entry->is_main == (module->is_main != 0) && entry->only_imports == only_imports &&
            (strcmp(entry->path, path) == 0 ||
             (entry->build_id_bytes != 0 && has_no_path(module, path)))) {
            return entry;
        }
    }
    return NULL;
}

const char *sj_registry_find_file(const sj_registry *registry, const char *path,
                                  char in_root[PATH_MAX])
{
    const char *sysroot = registry->options.sysroot;
    if (sysroot == NULL || sysroot[0] == '\0' ||
        snprintf(in_root, PATH_MAX, "%s%s", sysroot, path) >= PATH_MAX ||
        access(in_root, R_OK) != 0) {
        return path;
    }
    return in_root;
}

static pid_t pid_of(const sj_registry *registry, uint64_t process)
{
    return process - 1 < registry->process_count ? registry->processes[process - 1].pid : 0;
}

bool sj_registry_wants_module(sj_registry *registry, const sj_selection *selection,
                              uint64_t process, const char *path, bool is_main)
{
    if (sj_selection_wants_module(selection, path, is_main)) {
        return true;
    }
    if (is_main || process - 1 >= registry->process_count ||
        !sj_selection_allows_own_library(selection, path)) {
        return false;
    }
    const char *program = registry->processes[process - 1].executable;
    return !sj_selection_is_launcher(program) &&
           sj_own_libraries_has(&registry->own_libraries, program, path);
}

sj_status sj_registry_read_classes(sj_registry *registry, uint64_t process,
                                   const sj_link_module *module, const char *path)
{
    pthread_mutex_lock(&registry->mutex);
    const sj_selection *selection = registry->options.selection;
    const bool is_needed =
        registry->options.classes != NULL && sj_selection_needs_classes(selection) &&
        (path == NULL ||
         sj_registry_wants_module(registry, selection, process, path, module->is_main != 0));
    const pid_t pid = pid_of(registry, process);
    pthread_mutex_unlock(&registry->mutex);
    return is_needed ? sj_class_table_read_process(registry->options.classes, process, pid,
                                                   registry->options.sysroot)
                     : SJ_OK;
}

static const char *find_module_file(const sj_registry *registry, const sj_plan_request *request,
                                    char found[PATH_MAX])
{
    const char *path = sj_registry_find_file(registry, request->path, found);
    const pid_t pid = pid_of(registry, request->process);
    if (pid != 0 && has_no_path(request->module, path)) {
        snprintf(found, PATH_MAX, "/proc/%d/exe", (int)pid);
        return found;
    }
    return path;
}

/* Requests a module's plan and returns the plan's progress. The request names all functions,
 * because the cached plan serves every selection of functions.
 *
 * Without plan_wait_ms, the caller makes the plan. The function then only waits for a plan of the
 * same module that is being made ahead, and returns SJ_PLAN_MADE. */
static sj_plan_progress ask_for_plan(sj_registry *registry, const sj_module_plan_options *options,
                                     const sj_plan_request *request)
{
    const sj_planner_options planner = {.module_path = options->path,
                                        .map_file =
                                            options->is_main ? options->selection->map_file : NULL,
                                        .cache_directory = options->cache_directory,
                                        .with_receivers = true,
                                        .library_calls = options->selection->library_calls,
                                        .only_imports = options->only_imports,
                                        .threads = options->threads};
    if (registry->options.plan_wait_ms != 0) {
        uint64_t none_left_ns = 0;
        uint64_t *left_ns = request->process - 1 < registry->process_count
                                ? &registry->processes[request->process - 1].plan_wait_left_ns
                                : &none_left_ns;
        return sj_late_plans_ask(&registry->late_plans, registry->options.ahead, &planner,
                                 request->asked_ns, left_ns);
    }
    if (sj_plan_ahead_is_of(registry->options.ahead, options->path)) {
        (void)!sj_plan_ahead_wait(registry->options.ahead, UINT32_MAX);
    }
    return SJ_PLAN_MADE;
}

static sj_status make_plan(sj_registry *registry, const sj_plan_request *request, bool only_imports,
                           sj_found_types *types, sj_plan *plan, sj_error *error)
{
    char found[PATH_MAX];
    const sj_link_module *module = request->module;
    const sj_module_plan_options options = {.selection = registry->options.selection,
                                            .rules = registry->options.rules,
                                            .cache_directory = registry->options.cache_directory,
                                            .path = find_module_file(registry, request, found),
                                            .is_main = module->is_main != 0,
                                            .only_imports = only_imports,
                                            .threads = registry->options.plan_threads,
                                            .types = types,
                                            .pid = pid_of(registry, request->process)};
    const sj_plan_progress progress = ask_for_plan(registry, &options, request);
    if (progress != SJ_PLAN_MADE) {
        return progress == SJ_PLAN_BEING_MADE ? SJ_EAGAIN : SJ_ETIMEDOUT;
    }
    SJ_TRY(sj_module_plan_make(&options, plan, error));
    sj_late_plans_note_planned(&registry->late_plans, options.path);
    return SJ_OK;
}

/* Appends a zeroed module to the registry. */
static sj_status append_module(sj_registry *registry, sj_registry_module **entry)
{
    SJ_TRY(sj_array_reserve(&registry->modules, &registry->module_capacity, registry->module_count,
                            1, sizeof(*registry->modules)));
    *entry = &registry->modules[registry->module_count++];
    **entry = (sj_registry_module){0};
    return SJ_OK;
}

/* Adds to the counters the module's bytes of code and its bytes outside of known functions. Keeps
 * the path of the first module with poor coverage. */
static void note_coverage(sj_registry_counters *counters, const sj_plan_header *plan,
                          const char *path)
{
    const sj_text_coverage coverage = sj_text_coverage_of(plan);
    counters->text_bytes += coverage.text_bytes;
    counters->unknown_text_bytes += coverage.unknown_bytes;
    if (sj_text_coverage_is_poor(coverage) && counters->poor_modules++ == 0) {
        snprintf(counters->poor_module, sizeof(counters->poor_module), "%s", path);
        counters->poor_module_percent = 100 * coverage.unknown_bytes / coverage.text_bytes;
    }
}

sj_status sj_registry_keep_types(const sj_registry *registry, const sj_registry_module *entry,
                                 const sj_plan_header *plan, sj_value_rules *values,
                                 sj_found_types *types)
{
    const sj_plan_function *functions = sj_plan_functions(plan);
    sj_types_report report;
    SJ_TRY(sj_types_report_begin(&report, registry->options.writer,
                                 (uint32_t)(entry - registry->modules) + 1));
    sj_status status = SJ_OK;
    for (uint32_t i = 0; i < plan->function_count && status == SJ_OK; i++) {
        const uint32_t id = entry->first_function + i;
        sj_typed_function *typed = sj_found_types_pop(types, functions[i].offset);
        if (typed != NULL && sj_value_rules_typed(values, id) == NULL) {
            status = sj_types_report_add(&report, functions[i].offset, typed);
        }
        if (typed != NULL) {
            sj_value_rules_set_typed(values, id, typed);
        }
    }
    return sj_types_report_end(&report, status);
}

/* Sets the rules of the functions of a module. */
static void name_functions(sj_registry *registry, const sj_registry_module *entry,
                           const sj_plan_header *plan, const sj_link_module *module)
{
    sj_function_keys keys;
    sj_function_keys_init(&keys, entry->path, module->build_id, module->build_id_bytes);
    for (uint32_t i = 0; registry->options.rules != NULL && i < plan->function_count; i++) {
        sj_function_rules_name(registry->options.rules, entry->first_function + i,
                               sj_module_key(&keys, plan, i));
    }
}

static sj_status add_module(sj_registry *registry, const sj_link_module *module, const char *path,
                            bool only_imports, const sj_plan *plan, sj_found_types *types,
                            sj_error *error, sj_registry_module **added)
{
    const uint32_t count = plan->header->function_count;
    sj_registry_module *entry = NULL;
    if (append_module(registry, &entry) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "out of memory for module %s", path);
    }
    memcpy(entry->build_id, module->build_id, module->build_id_bytes);
    entry->build_id_bytes = (uint8_t)module->build_id_bytes;
    entry->is_main = module->is_main != 0;
    entry->has_imports = registry->options.selection->library_calls;
    entry->only_imports = only_imports;
    entry->first_function = registry->next_function;
    entry->function_count = count;
    snprintf(entry->path, sizeof(entry->path), "%s", path);
    snprintf(entry->plan_path, sizeof(entry->plan_path), "%s/%zu.plan",
             registry->options.runtime_directory, registry->module_count);
    const sj_plan_function *functions = sj_plan_functions(plan->header);
    for (uint32_t i = 0; i < count; i++) {
        if (functions[i].skip != SJ_SKIP_NONE && functions[i].skip < SJ_REGISTRY_SKIPS) {
            entry->skips[functions[i].skip]++;
        }
    }
    name_functions(registry, entry, plan->header, module);
    sj_status status = sj_plan_write(plan, entry->plan_path, error);
    if (status == SJ_OK && sj_selection_has_receivers(registry->options.selection)) {
        status = sj_method_names_add(&registry->method_names, plan->header, entry->first_function);
    }
    if (status == SJ_OK) {
        status = sj_method_categories_add(&registry->categories, plan->header,
                                          (uint32_t)registry->module_count);
    }
    if (status == SJ_OK) {
        status = sj_module_frames_send(registry->options.writer, plan->header, path,
                                       (uint32_t)registry->module_count, entry->first_function);
    }
    if (status == SJ_OK && types->count != 0) {
        status = sj_registry_keep_types(registry, entry, plan->header,
                                        registry->options.selection->values, types);
    }
    if (status != SJ_OK) {
        registry->module_count--;
        return sj_fail(error, status, "cannot announce module %s: %s", path,
                       sj_status_text(status));
    }
    if (!only_imports) {
        note_coverage(&registry->counters, plan->header, path);
    }
    /* Reserve at least one id: first_function must differ between modules, also if a module has no
     * functions. */
    registry->next_function += count != 0 ? count : 1;
    *added = entry;
    return SJ_OK;
}

/* Plans a module and adds it to the registry. Returns SJ_EAGAIN if the plan is still being made.
 * Returns SJ_EUNSUPPORTED if planning failed or took too long, or if a plan of imports is empty.
 * After a timeout, the program continues, and a late plan's hooks are installed when the plan is
 * ready. */
static sj_status plan_new_module(sj_registry *registry, const sj_plan_request *request,
                                 bool only_imports, sj_registry_module **entry)
{
    const char *path = request->path;
    sj_plan plan = {0};
    sj_found_types types = {0};
    sj_error error = {0};
    sj_status status = make_plan(registry, request, only_imports, &types, &plan, &error);
    if (status == SJ_OK &&
        (uint64_t)registry->next_function + plan.header->function_count > SJ_RECORD_FUNCTIONS_END) {
        status = sj_fail(&error, SJ_ELIMIT, "%s: the session has too many functions", path);
    }
    const bool is_empty = status == SJ_OK && only_imports && plan.header->function_count == 0;
    if (status == SJ_OK && !is_empty) {
        status =
            add_module(registry, request->module, path, only_imports, &plan, &types, &error, entry);
    }
    sj_plan_free(&plan);
    sj_found_types_deinit(&types);
    if (status == SJ_EAGAIN) {
        return status;
    }
    registry->counters.plan_ns += sj_clock_ns(CLOCK_MONOTONIC) - request->asked_ns;
    if (is_empty) {
        return SJ_EUNSUPPORTED;
    }
    if (status != SJ_OK && status != SJ_ETIMEDOUT) {
        if (error.text[0] == '\0') {
            (void)!sj_fail(&error, status, "%s", sj_status_text(status));
        }
        sj_registry_note_plan_failure(registry, path, &error);
    }
    return status == SJ_OK ? SJ_OK : SJ_EUNSUPPORTED;
}

static sj_status map_module(sj_registry *registry, const sj_plan_request *request,
                            const sj_registry_module *entry)
{
    const sj_registry_mapping mapping = {.process = request->process,
                                         .bias = request->module->bias,
                                         .loaded_ticks = request->now_ticks,
                                         .module = (uint32_t)(entry - registry->modules) + 1};
    return sj_registry_add_mapping(registry, &mapping);
}

/* Reports the globals of the map file if the module is the main program. The planner has already
 * checked that the map file belongs to the program. If the spool is full, the writer counts the
 * lost reports, and the function returns SJ_OK. */
static sj_status report_globals(const sj_registry *registry, const sj_plan_request *request,
                                const sj_registry_module *entry)
{
    char in_root[PATH_MAX];
    const char *map_file = registry->options.selection->map_file;
    if (map_file == NULL || !entry->is_main) {
        return SJ_OK;
    }
    const sj_status status = sj_map_globals_report(
        registry->options.writer, sj_registry_find_file(registry, request->path, in_root), map_file,
        (uint32_t)(entry - registry->modules) + 1, request->now_ticks);
    return status == SJ_EFULL ? SJ_OK : status;
}

sj_status sj_registry_plan_locked(sj_registry *registry, const sj_plan_request *request,
                                  sj_registry_module **planned)
{
    if (registry->options.rules != NULL) {
        sj_function_rules_module(registry->options.rules, request->path);
    }
    SJ_TRY(sj_registry_report_uncounted(registry, request));
    if (!sj_registry_wants_module(registry, registry->options.selection, request->process,
                                  request->path, request->module->is_main != 0)) {
        return SJ_EUNSUPPORTED;
    }
    sj_registry_module *entry = find_module(registry, request->module, request->path, false);
    if (entry == NULL) {
        SJ_TRY(plan_new_module(registry, request, false, &entry));
        SJ_TRY(report_globals(registry, request, entry));
    }
    *planned = entry;
    return map_module(registry, request, entry);
}

sj_status sj_registry_plan_imports_locked(sj_registry *registry, const sj_plan_request *request,
                                          sj_registry_module **planned)
{
    const sj_selection *selection = registry->options.selection;
    const sj_registry_module *whole = find_module(registry, request->module, request->path, false);
    if (!selection->library_calls || whole == NULL || whole->has_imports ||
        !sj_registry_wants_module(registry, selection, request->process, request->path,
                                  request->module->is_main != 0)) {
        return SJ_EUNSUPPORTED;
    }
    sj_registry_module *entry = find_module(registry, request->module, request->path, true);
    if (entry == NULL) {
        SJ_TRY(plan_new_module(registry, request, true, &entry));
    }
    *planned = entry;
    return map_module(registry, request, entry);
}

sj_status sj_registry_plan_module(sj_registry *registry, const sj_plan_request *request,
                                  sj_plan_reply *reply)
{
    sj_registry_module *entry = NULL;
    SJ_TRY(sj_registry_read_classes(registry, request->process, request->module, request->path));
    pthread_mutex_lock(&registry->mutex);
    const sj_status status = sj_registry_plan_locked(registry, request, &entry);
    if (status == SJ_OK) {
        reply->first_function = entry->first_function;
        snprintf(reply->plan_path, sizeof(reply->plan_path), "%s", entry->plan_path);
    }
    pthread_mutex_unlock(&registry->mutex);
    return status;
}

sj_status sj_registry_add_group(sj_registry *registry, const sj_registry_mapping *mapping,
                                const sj_plan_header *group, const char *path,
                                uint32_t *first_function)
{
    if ((uint64_t)registry->next_function + group->function_count > SJ_RECORD_FUNCTIONS_END) {
        return SJ_ELIMIT;
    }
    sj_registry_module *entry = NULL;
    SJ_TRY(append_module(registry, &entry));
    memcpy(entry->build_id, group->build_id, group->build_id_bytes);
    entry->build_id_bytes = group->build_id_bytes;
    entry->first_function = registry->next_function;
    entry->function_count = group->function_count;
    snprintf(entry->path, sizeof(entry->path), "%s", path);
    const sj_status status =
        sj_module_frames_send(registry->options.writer, group, path,
                              (uint32_t)registry->module_count, entry->first_function);
    if (status != SJ_OK) {
        registry->module_count--;
        return status;
    }
    registry->next_function += group->function_count;
    *first_function = entry->first_function;
    sj_registry_mapping made = *mapping;
    made.module = (uint32_t)registry->module_count;
    return sj_registry_add_mapping(registry, &made);
}

/* Returns the latest group with the same path and methods, or NULL if there is none. The group may
 * belong to another process, or to a class that was freed and created again. */
static const sj_registry_module *find_group(const sj_registry *registry,
                                            const sj_plan_header *group, const char *path)
{
    for (size_t i = registry->module_count; i-- > 0;) {
        const sj_registry_module *module = &registry->modules[i];
        if (module->build_id_bytes == group->build_id_bytes &&
            memcmp(module->build_id, group->build_id, group->build_id_bytes) == 0 &&
            module->function_count == group->function_count && strcmp(module->path, path) == 0) {
            return module;
        }
    }
    return NULL;
}

/* Adds a group. If an equal group exists, maps that group in the process instead. The collector
 * sums by function id, so equal functions need one id. */
static sj_status add_or_find_group(sj_registry *registry, const sj_registry_mapping *mapping,
                                   const sj_plan_header *group, const char *path,
                                   uint32_t *first_function, bool *is_new)
{
    const sj_registry_module *known = find_group(registry, group, path);
    *is_new = known == NULL;
    if (known == NULL) {
        return sj_registry_add_group(registry, mapping, group, path, first_function);
    }
    sj_registry_mapping again = *mapping;
    again.module = (uint32_t)(known - registry->modules) + 1;
    *first_function = known->first_function;
    return sj_registry_has_mapping(registry, again.process, again.module)
               ? SJ_OK
               : sj_registry_add_mapping(registry, &again);
}

static void count_methods(sj_registry *registry, const sj_plan_header *group, const uint8_t *wanted)
{
    registry->counters.functions += group->function_count;
    for (uint32_t i = 0; i < group->function_count; i++) {
        const uint32_t skip = sj_plan_functions(group)[i].skip;
        registry->counters.hooked += wanted[i];
        registry->counters.filtered += skip == SJ_SKIP_FILTERED;
        registry->counters.skips[skip] += skip != SJ_SKIP_NONE;
    }
}

sj_status sj_registry_add_methods(sj_registry *registry, uint64_t process, const char *path,
                                  sj_slice names, uint32_t count, uint64_t now_ticks,
                                  uint32_t *first_function, uint8_t *wanted)
{
    sj_plan_header *group = NULL;
    const sj_registry_mapping mapping = {.process = process, .loaded_ticks = now_ticks};
    pthread_mutex_lock(&registry->mutex);
    sj_status status =
        sj_method_group_make(registry->options.selection, path, names, count, wanted, &group);
    if (status != SJ_OK) {
        pthread_mutex_unlock(&registry->mutex);
        return status;
    }
    /* A group without wanted methods is counted, but not stored. */
    const bool is_stored = memchr(wanted, 1, count) != NULL;
    bool is_new = true;
    *first_function = registry->next_function;
    if (is_stored) {
        status = add_or_find_group(registry, &mapping, group, path, first_function, &is_new);
    }
    if (status == SJ_OK && is_new) {
        registry->counters.modules += is_stored ? 1 : 0;
        count_methods(registry, group, wanted);
    }
    pthread_mutex_unlock(&registry->mutex);
    free(group);
    return status;
}

size_t sj_registry_name_method(sj_registry *registry, uint64_t process, const char *method,
                               uint64_t code, char *name, size_t capacity)
{
    const char *category = NULL;
    pthread_mutex_lock(&registry->mutex);
    const sj_mapping_list *mappings = sj_registry_mappings_of(registry, process);
    for (size_t i = 0; i < mappings->count && category == NULL; i++) {
        const sj_registry_mapping *mapping = &mappings->items[i];
        if (mapping->process == process) {
            category = sj_method_categories_find(&registry->categories, mapping->module,
                                                 code - mapping->bias);
        }
    }
    const size_t bytes =
        sj_method_name_in(method, category != NULL ? category : "", name, capacity);
    pthread_mutex_unlock(&registry->mutex);
    return bytes;
}

sj_status sj_registry_learn_class(sj_registry *registry, uint64_t process, sj_slice lineage)
{
    SJ_TRY(sj_registry_read_classes(registry, process, NULL, NULL));
    return registry->options.classes != NULL
               ? sj_class_table_learn(registry->options.classes, lineage)
               : SJ_OK;
}
