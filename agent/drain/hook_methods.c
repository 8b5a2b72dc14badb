#include "agent/drain/hook_methods.h"

#include "agent/livepatch/jvm_request.h"
#include "agent/livepatch/mute.h"

#include <signal.h>

/* Estimated cost of interpreting and compiling again the code that a transformation has
 * discarded. */
#define WARM_UP_NS UINT64_C(150000000)

static uint64_t transformed_ns(sj_registry *registry)
{
    sj_registry_counters counters;
    sj_registry_get_counters(registry, &counters);
    return counters.jvm_transformed_ns;
}

static bool is_rare(void *context, uint32_t function)
{
    const sj_method_change *change = context;
    return sj_governed_process_is_rare(change->governed, function);
}

/* Mutes the methods that may keep their probes and moves them to the front. Returns their
 * number. */
static size_t mute_rare(sj_registry *registry, sj_method_change *change, uint32_t *methods,
                        size_t count, uint64_t *cost_ns)
{
    sj_error ignored = {0};
    uint64_t stopped_ns = 0;
    const sj_left_out_choice choice = {.process = change->process,
                                       .methods = methods,
                                       .count = count,
                                       .is_rare = is_rare,
                                       .context = change};
    const size_t muted = sj_registry_mute(registry, &choice);
    if (muted != 0 && sj_mute_functions(change->pid, methods, muted, true, change->freed,
                                        &stopped_ns, &ignored) != SJ_OK) {
        (void)sj_registry_unmute_found(registry, change->process, methods, muted);
        (void)sj_registry_leave_out(registry, change->process, methods, muted, true);
        return 0; /* the classes of these methods are transformed */
    }
    *cost_ns += stopped_ns;
    return muted;
}

/* Makes the muted ones of the methods record again, and moves them to the front. Writes their
 * number to `*muted`. They stay muted in a process that refuses it. */
static sj_status unmute(sj_registry *registry, const sj_method_change *change, uint32_t *methods,
                        size_t count, size_t *muted, uint64_t *cost_ns, sj_error *error)
{
    uint64_t stopped_ns = 0;
    sj_status status = SJ_OK;
    *muted = sj_registry_find_muted(registry, change->process, methods, count);
    if (*muted != 0) {
        status = sj_mute_functions(change->pid, methods, *muted, false, change->freed, &stopped_ns,
                                   error);
    }
    *cost_ns += stopped_ns;
    if (status != SJ_OK && kill(change->pid, 0) == 0) {
        return status;
    }
    (void)sj_registry_unmute_found(registry, change->process, methods, *muted);
    return SJ_OK;
}

/* Restores the methods' state after a failed change. Otherwise a later transformation would change
 * them without a recorded decision. */
static void revert_methods(sj_registry *registry, const sj_method_change *change, uint32_t *methods,
                           size_t count, bool is_selected, uint64_t *cost_ns)
{
    size_t muted = 0;
    bool is_joined = false;
    sj_error ignored = {0};
    if (!change->on) {
        (void)!unmute(registry, change, methods, count, &muted, cost_ns, &ignored);
    }
    (void)sj_registry_leave_out(registry, change->process, methods, count, change->on);
    if (is_selected) {
        (void)!sj_jvm_select(change->pid, &is_joined, &ignored);
    }
}

sj_status sj_hook_methods(void *context, sj_method_change *change, uint64_t *cost_ns,
                          sj_error *error)
{
    sj_registry *registry = context;
    const uint64_t before_ns = transformed_ns(registry);
    const size_t others = sj_registry_leave_out(registry, change->process, change->functions,
                                                change->count, !change->on);
    uint32_t *methods = change->functions + others;
    const size_t count = change->count - others;
    bool is_joined = false;
    uint64_t muting_ns = 0;
    change->count = others;
    change->muted = 0;
    if (!change->on && count != 0) {
        change->muted = mute_rare(registry, change, methods, count, &muting_ns);
    }
    sj_status status =
        count != change->muted ? sj_jvm_select(change->pid, &is_joined, error) : SJ_OK;
    const bool is_selected = status == SJ_OK && count != change->muted;
    if (status == SJ_OK && change->on) {
        status = unmute(registry, change, methods, count, &change->muted, &muting_ns, error);
    }
    if (status != SJ_OK) {
        revert_methods(registry, change, methods, count, is_selected, &muting_ns);
    }
    const uint64_t taken_ns = transformed_ns(registry) - before_ns;
    *cost_ns = muting_ns + taken_ns + (taken_ns != 0 ? WARM_UP_NS : 0);
    return status;
}
