#include "agent/drain/hook_methods.h"

#include "agent/livepatch/jvm_request.h"

static uint64_t transformed_ns(sj_registry *registry)
{
    sj_registry_counters counters;
    sj_registry_get_counters(registry, &counters);
    return counters.jvm_transformed_ns;
}

sj_status sj_hook_methods(void *registry, uint64_t process, pid_t pid, uint32_t *functions,
                          size_t *count, bool on, uint64_t *cost_ns, sj_error *error)
{
    const size_t others = sj_registry_leave_out(registry, process, functions, *count, !on);
    const uint64_t before_ns = transformed_ns(registry);
    const size_t method_count = *count - others;
    bool is_joined = false;
    *count = others;
    const sj_status status = method_count != 0 ? sj_jvm_select(pid, &is_joined, error) : SJ_OK;
    if (status != SJ_OK) { /* they would change with no decision on record, whenever transformed */
        (void)sj_registry_leave_out(registry, process, functions + others, method_count, on);
    }
    *cost_ns = transformed_ns(registry) - before_ns;
    return status;
}
