#include "agent/inproc/heap_guard/internal.h"

static __thread bool is_forced __attribute__((tls_model("initial-exec")));
/* The thread's sampling countdown before sj_guard_next_allocations(true). */
static __thread int64_t saved_countdown __attribute__((tls_model("initial-exec")));

void sj_guard_next_allocations(bool is_wanted)
{
    is_forced = is_wanted;
    if (is_wanted) {
        saved_countdown = sj_sampling_countdown;
        sj_sampling_countdown = 1;
    } else {
        sj_sampling_countdown = saved_countdown;
    }
}

bool sj_guard_is_forced(void)
{
    return is_forced;
}

bool sj_guard_has_rules(const sj_zombie_region *region)
{
    return region->settings.guard.size_count != 0 || region->settings.guard.callers[0] != '\0';
}

static bool matches_size_rule(const sj_zombie_guard *guard, size_t bytes)
{
    for (uint32_t i = 0; i < guard->size_count && i < SJ_ZOMBIE_SIZES; i++) {
        if (bytes >= guard->sizes[i].least && bytes <= guard->sizes[i].most) {
            return true;
        }
    }
    return false;
}

/* True if the call before the return address `site` lies in a range that the policy names. */
static bool matches_site_rule(const sj_zombie_region *region, uint64_t site)
{
    const uint32_t count = atomic_load_explicit(&region->site_count, memory_order_acquire);
    for (uint32_t i = 0; i < count && i < SJ_ZOMBIE_SITES; i++) {
        if (site - 1 >= region->sites[i].low && site - 1 < region->sites[i].high) {
            return true;
        }
    }
    return false;
}

bool sj_guard_wants(const sj_zombie_region *region, size_t bytes, uint64_t site)
{
    return matches_size_rule(&region->settings.guard, bytes) || matches_site_rule(region, site);
}
