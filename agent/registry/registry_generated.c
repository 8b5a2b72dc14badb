#include "agent/planner/generated.h"
#include "agent/registry/registry_internal.h"

#include "agent/host/clock.h"
#include "agent/registry/method_group.h"
#include "proto/base/cursor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Reads the functions that a file describes. Their code bytes are borrowed from the file. */
static sj_status read_functions(const sj_registry *registry, sj_slice file, uint32_t count,
                                sj_generated_function *functions)
{
    sj_reader reader = sj_reader_of(file.data, file.size);
    for (uint32_t i = 0; i < count; i++) {
        sj_link_code_function read;
        const uint8_t *bytes = sj_read_bytes(&reader, sizeof(read));
        if (bytes == NULL) {
            return SJ_ECORRUPT;
        }
        memcpy(&read, bytes, sizeof(read));
        if (read.function >= registry->next_function) {
            return SJ_ECORRUPT;
        }
        functions[i] = (sj_generated_function){
            .address = read.address, .size = read.bytes, .function = read.function};
    }
    for (uint32_t i = 0; i < count; i++) {
        functions[i].bytes = sj_read_bytes(&reader, functions[i].size);
    }
    return reader.bad ? SJ_ECORRUPT : SJ_OK;
}

static int compare_failures(const void *left, const void *right)
{
    const sj_link_failure *a = left;
    const sj_link_failure *b = right;
    return (a->function > b->function) - (a->function < b->function);
}

/* Sends failures of one module, after replacing their ids by indices in the module. */
static sj_status report_module(sj_registry *registry, uint64_t process,
                               const sj_registry_module *entry, sj_link_failure *failures,
                               size_t count)
{
    for (size_t i = 0; i < count; i++) {
        failures[i].function -= entry->first_function;
    }
    return count != 0 ? sj_registry_send_unhooked(registry, process, entry, failures, count)
                      : SJ_OK;
}

static sj_status report_sorted(sj_registry *registry, uint64_t process, sj_link_failure *failures,
                               size_t count)
{
    sj_status status = SJ_OK;
    size_t next = 0;
    for (size_t i = 0; i < registry->module_count && status == SJ_OK; i++) {
        const sj_registry_module *entry = &registry->modules[i];
        while (next < count && failures[next].function < entry->first_function) {
            next++; /* belongs to no module */
        }
        const size_t first = next;
        while (next < count &&
               failures[next].function - entry->first_function < entry->function_count) {
            next++;
        }
        status = report_module(registry, process, entry, failures + first, next - first);
    }
    return status;
}

static sj_status report_locked(sj_registry *registry, uint64_t process,
                               const sj_link_failure *failures, size_t count)
{
    sj_link_failure *sorted = malloc((count + 1) * sizeof(*sorted));
    if (sorted == NULL) {
        return SJ_ENOMEM;
    }
    if (count != 0) {
        memcpy(sorted, failures, count * sizeof(*sorted));
    }
    qsort(sorted, count, sizeof(*sorted), compare_failures);
    const sj_status status = report_sorted(registry, process, sorted, count);
    free(sorted);
    registry->counters.failed += count;
    return status;
}

sj_status sj_registry_report_generated(sj_registry *registry, uint64_t process,
                                       const sj_link_failure *failures, size_t count)
{
    pthread_mutex_lock(&registry->mutex);
    const sj_status status = report_locked(registry, process, failures, count);
    pthread_mutex_unlock(&registry->mutex);
    return status;
}

/* Reports the functions that the plan does not hook. */
static sj_status report_plan(sj_registry *registry, uint64_t process, const sj_plan *plan)
{
    const sj_plan_function *functions = sj_plan_functions(plan->header);
    sj_link_failure *failures = calloc(plan->header->function_count + 1, sizeof(*failures));
    size_t count = 0;
    if (failures == NULL) {
        return SJ_ENOMEM;
    }
    for (uint32_t i = 0; i < plan->header->function_count; i++) {
        if (!sj_plan_is_hooked(&functions[i])) {
            failures[count++] =
                (sj_link_failure){.function = functions[i].name, .skip = functions[i].skip};
        }
    }
    const sj_status status = report_locked(registry, process, failures, count);
    free(failures);
    return status;
}

static sj_status plan_read(sj_registry *registry, uint64_t process,
                           const sj_generated_function *functions, uint32_t count,
                           sj_plan_reply *reply)
{
    sj_plan plan = {0};
    const uint64_t start_ns = sj_clock_ns(CLOCK_MONOTONIC);
    sj_status status = sj_plan_make_generated(sj_method_group_machine(), functions, count, &plan);
    reply->first_function = 1;
    if (status == SJ_OK && plan.size_bytes > SJ_LINK_PLAN_BYTES) {
        snprintf(reply->plan_path, sizeof(reply->plan_path), "%s/generated-%u.plan",
                 registry->options.runtime_directory, ++registry->generated_count);
        status = sj_plan_write(&plan, reply->plan_path, NULL);
    }
    if (status == SJ_OK) {
        status = report_plan(registry, process, &plan);
    }
    if (status == SJ_OK) {
        status = sj_method_code_add(&registry->method_code, registry->options.writer, process,
                                    functions, count, sj_clock_ticks());
    }
    registry->counters.plan_ns += sj_clock_ns(CLOCK_MONOTONIC) - start_ns;
    if (status == SJ_OK && reply->plan_path[0] == '\0') {
        reply->plan = plan;
    } else {
        sj_plan_free(&plan);
    }
    return status;
}

static sj_status skip_read(sj_registry *registry, uint64_t process,
                           const sj_generated_function *functions, uint32_t count, uint32_t skip)
{
    sj_link_failure *failures = calloc(count, sizeof(*failures));
    if (failures == NULL) {
        return SJ_ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        failures[i] = (sj_link_failure){.function = functions[i].function, .skip = skip};
    }
    const sj_status status = report_locked(registry, process, failures, count);
    free(failures);
    if (skip == SJ_SKIP_PRECOMPILED) { /* nothing else records them */
        registry->counters.hooked -= count;
        registry->counters.skips[skip] += count;
    }
    return status;
}

/* Plans the functions in a file if `reply` is given. Otherwise reports that none of them is
 * hooked. */
static sj_status plan_or_skip(sj_registry *registry, uint64_t process, sj_slice file,
                              uint32_t count, uint32_t skip, sj_plan_reply *reply)
{
    if (count == 0 || count > file.size / sizeof(sj_link_code_function)) {
        return SJ_ECORRUPT;
    }
    sj_generated_function *functions = calloc(count, sizeof(*functions));
    if (functions == NULL) {
        return SJ_ENOMEM;
    }
    pthread_mutex_lock(&registry->mutex);
    sj_status status = read_functions(registry, file, count, functions);
    if (status == SJ_OK) {
        status = reply != NULL ? plan_read(registry, process, functions, count, reply)
                               : skip_read(registry, process, functions, count, skip);
    }
    pthread_mutex_unlock(&registry->mutex);
    free(functions);
    return status;
}

sj_status sj_registry_plan_generated(sj_registry *registry, uint64_t process, sj_slice file,
                                     uint32_t count, sj_plan_reply *reply)
{
    return plan_or_skip(registry, process, file, count, SJ_SKIP_NONE, reply);
}

sj_status sj_registry_skip_generated(sj_registry *registry, uint64_t process, sj_slice file,
                                     uint32_t count, uint32_t skip)
{
    return plan_or_skip(registry, process, file, count, skip, NULL);
}
