/* Functions whose hooks a program has overwritten. */
#include "agent/host/clock.h"
#include "agent/planner/plan_file.h"
#include "agent/registry/registry_internal.h"
#include "agent/session/json_report.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 512 };

static const sj_registry_module *find_module_of(const sj_registry *registry, uint32_t function)
{
    for (size_t i = 0; i < registry->module_count; i++) {
        const sj_registry_module *entry = &registry->modules[i];
        if (entry->plan_path[0] != '\0' && function >= entry->first_function &&
            function - entry->first_function < entry->function_count) {
            return entry;
        }
    }
    return NULL;
}

/* Writes FILE!NAME, or FILE+OFFSET for a function without a name. Returns false if the function is
 * in no plan. */
static bool name_function(const sj_registry *registry, uint32_t function, char name[NAME_BYTES])
{
    sj_plan plan = {0};
    const sj_registry_module *entry = find_module_of(registry, function);
    if (entry == NULL || sj_plan_map(entry->plan_path, &plan) != SJ_OK) {
        return false;
    }
    const char *slash = strrchr(entry->path, '/');
    const char *file = slash != NULL ? slash + 1 : entry->path;
    const sj_plan_function *found =
        &sj_plan_functions(plan.header)[function - entry->first_function];
    const char *symbol = sj_plan_string(plan.header, found->name);
    if (symbol[0] != '\0') {
        snprintf(name, NAME_BYTES, "%.200s!%.300s", file, symbol);
    } else {
        snprintf(name, NAME_BYTES, "%.200s+0x%llx", file, (unsigned long long)found->offset);
    }
    sj_plan_free(&plan);
    return true;
}

static json_t *list_names(const sj_registry *registry, const sj_overwritten *found)
{
    char name[NAME_BYTES];
    json_t *names = json_array();
    for (uint32_t i = 0; i < found->count && i < SJ_OVERWRITTEN_NAMED; i++) {
        if (name_function(registry, found->functions[i], name)) {
            (void)json_array_append_new(names, json_string(name));
        }
    }
    return names;
}

static sj_status report(sj_registry *registry, uint64_t process, uint32_t count, json_t *names)
{
    json_t *json = json_pack("{s:I, s:O}", "functions", (json_int_t)count, "names", names);
    const sj_report row = {.ticks = sj_clock_ticks(),
                           .process = process,
                           .monitor = "recorder",
                           .kind = "overwritten"};
    const sj_status status = sj_json_report_send(registry->options.writer, row, json);
    return status == SJ_EFULL ? SJ_OK : status;
}

sj_status sj_registry_report_overwritten(sj_registry *registry, uint64_t process,
                                         const sj_overwritten *found)
{
    if (found->count == 0) {
        return SJ_OK;
    }
    pthread_mutex_lock(&registry->mutex);
    sj_registry_counters *counters = &registry->counters;
    json_t *names = list_names(registry, found);
    const char *first = json_string_value(json_array_get(names, 0));
    if (counters->overwritten == 0 && first != NULL) {
        snprintf(counters->first_overwritten, sizeof(counters->first_overwritten), "%s", first);
    }
    counters->overwritten += found->count;
    const sj_status status =
        names != NULL ? report(registry, process, found->count, names) : SJ_ENOMEM;
    json_decref(names);
    pthread_mutex_unlock(&registry->mutex);
    return status;
}
