#include "agent/registry/registry.h"

#include "agent/registry/registry_internal.h"
#include "proto/base/array.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { UNHOOKED_PER_FRAME = 4096 };

static const sj_slice no_payload = {0};

sj_status sj_registry_new(const sj_registry_options *options, sj_registry **registry)
{
    sj_registry *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    made->options = *options;
    made->next_function = 1;
    /* The database describes this machine's files, not those below a sysroot. */
    made->own_libraries.database =
        options->sysroot == NULL || options->sysroot[0] == '\0' ? "/var/lib/dpkg" : NULL;
    pthread_mutex_init(&made->mutex, NULL);
    *registry = made;
    return SJ_OK;
}

void sj_registry_free(sj_registry *registry)
{
    if (registry == NULL) {
        return;
    }
    pthread_mutex_destroy(&registry->mutex);
    sj_late_plans_deinit(&registry->late_plans);
    sj_own_libraries_deinit(&registry->own_libraries);
    for (size_t i = 0; i < registry->process_count; i++) {
        free(registry->processes[i].mappings.items);
    }
    free(registry->processes);
    free(registry->living);
    free(registry->unknown_mappings.items);
    for (size_t i = 0; i < registry->module_count; i++) {
        if (registry->modules[i].mapped_plan != NULL) {
            (void)munmap(registry->modules[i].mapped_plan, registry->modules[i].mapped_bytes);
        }
    }
    free(registry->modules);
    free(registry->renewed);
    for (size_t i = 0; i < registry->container_count; i++) {
        free(registry->containers[i].wanted);
        free(registry->containers[i].values);
        sj_source_lines_free(registry->containers[i].lines);
    }
    free(registry->containers);
    for (size_t i = 0; i < registry->class_count; i++) {
        free(registry->classes[i].names);
        free(registry->classes[i].left_out);
        sj_source_lines_free(registry->classes[i].lines);
    }
    free(registry->classes);
    sj_method_code_deinit(&registry->method_code);
    free(registry->descendants);
    sj_method_names_deinit(&registry->method_names);
    sj_replaced_methods_deinit(&registry->replaced_methods);
    for (size_t i = 0; i < registry->named_count; i++) {
        free(registry->named[i].name);
    }
    free(registry->named);
    free(registry->renamed);
    sj_method_categories_deinit(&registry->categories);
    sj_hash_map_deinit(&registry->receiver_functions);
    free(registry);
}

static sj_registry_module *module_of_function(sj_registry *registry, uint32_t first_function)
{
    for (size_t i = 0; i < registry->module_count; i++) {
        if (registry->modules[i].first_function == first_function) {
            return &registry->modules[i];
        }
    }
    return NULL;
}

/* Adds a module to the summary's counts, once per session. Cold parts are not counted, because they
 * belong to a function that is. */
static void count_applied(sj_registry *registry, sj_registry_module *entry,
                          const sj_link_applied *applied, const sj_link_failure *failures,
                          size_t failure_count)
{
    sj_registry_counters *counters = &registry->counters;
    counters->hook_ns += applied->cpu_ns;
    if (entry->counted) {
        return;
    }
    entry->counted = true;
    counters->modules += entry->only_imports ? 0 : 1;
    counters->functions += entry->function_count - entry->skips[SJ_SKIP_COLD_PART];
    counters->hooked += applied->hooked;
    counters->failed += applied->failed;
    for (size_t i = 0; i < SJ_REGISTRY_SKIPS; i++) {
        counters->skips[i] += i == SJ_SKIP_COLD_PART ? 0 : entry->skips[i];
    }
    counters->filtered += entry->skips[SJ_SKIP_FILTERED];
    for (size_t i = 0; i < failure_count; i++) {
        counters->skips[failures[i].skip < SJ_REGISTRY_SKIPS ? failures[i].skip : 0]++;
    }
}

sj_status sj_registry_send_unhooked(sj_registry *registry, uint64_t process,
                                    const sj_registry_module *entry,
                                    const sj_link_failure *failures, size_t count)
{
    uint32_t functions[UNHOOKED_PER_FRAME];
    uint32_t skips[UNHOOKED_PER_FRAME];
    Sojourn__Unhooked message = SOJOURN__UNHOOKED__INIT;
    message.session_id = sj_frame_writer_session_bytes(registry->options.writer);
    message.process = process;
    message.module = (uint32_t)(entry - registry->modules) + 1;
    message.function = functions;
    message.skip = skips;
    for (size_t i = 0; i < count; i++) {
        if (failures[i].function < entry->function_count) {
            functions[message.n_function] = entry->first_function + failures[i].function;
            skips[message.n_function++] = failures[i].skip;
        }
        if (message.n_function == UNHOOKED_PER_FRAME ||
            (i + 1 == count && message.n_function != 0)) {
            message.n_skip = message.n_function;
            SJ_TRY(sj_frame_writer_send(registry->options.writer, SJ_FRAME_UNHOOKED, &message.base,
                                        no_payload));
            message.n_function = 0;
        }
    }
    return SJ_OK;
}

sj_status sj_registry_applied(sj_registry *registry, uint64_t process,
                              const sj_link_applied *applied, const sj_link_failure *failures,
                              size_t failure_count)
{
    pthread_mutex_lock(&registry->mutex);
    sj_status status = SJ_ENOTFOUND;
    sj_registry_module *entry = module_of_function(registry, applied->first_function);
    if (entry != NULL) {
        count_applied(registry, entry, applied, failures, failure_count);
        status = sj_registry_send_unhooked(registry, process, entry, failures, failure_count);
    }
    pthread_mutex_unlock(&registry->mutex);
    return status;
}

sj_status sj_registry_index_functions(sj_registry *registry, uint64_t process,
                                      sj_function_index *index)
{
    sj_status status = SJ_OK;
    *index = (sj_function_index){0};
    pthread_mutex_lock(&registry->mutex);
    const sj_mapping_list *mappings = sj_registry_mappings_of(registry, process);
    for (size_t i = 0; i < mappings->count && status == SJ_OK; i++) {
        const sj_registry_mapping *mapping = &mappings->items[i];
        const sj_registry_module *module = &registry->modules[mapping->module - 1];
        /* Groups of methods have no addresses. */
        if (mapping->process == process && module->plan_path[0] != '\0') {
            status = sj_function_index_add(index, module->plan_path, mapping->bias,
                                           module->first_function);
        }
    }
    pthread_mutex_unlock(&registry->mutex);
    sj_function_index_finish(index);
    return status;
}

void sj_registry_get_counters(sj_registry *registry, sj_registry_counters *counters)
{
    pthread_mutex_lock(&registry->mutex);
    *counters = registry->counters;
    pthread_mutex_unlock(&registry->mutex);
}
