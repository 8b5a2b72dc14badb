/* Design notes
 *
 * Signal handlers and unwinders search the areas while another thread adds one. An entry is valid
 * while its `low` is not 0. `low` is written last when an area is added, and cleared first when the
 * area is removed. No thread runs code of an area that is being removed, so a thread that searches
 * for its own area finds a complete entry. */
#include "agent/inproc/hooks/stub_areas.h"

#include <stdatomic.h>
#include <string.h>

sj_stub_ranges sj_stub_areas;

/* All areas that were ever added lie in [lowest, highest). */
static _Atomic uint64_t lowest = UINT64_MAX;
static _Atomic uint64_t highest;

static void widen_bounds(uint64_t low, uint64_t high)
{
    uint64_t before = atomic_load(&lowest);
    while (low < before && !atomic_compare_exchange_weak(&lowest, &before, low)) {
    }
    before = atomic_load(&highest);
    while (high > before && !atomic_compare_exchange_weak(&highest, &before, high)) {
    }
}

/* Writes an area to entry `index`. Returns false if the entry is in use. */
static bool claim_entry(uint32_t index, uint64_t low, uint64_t bytes)
{
    uint64_t none = 0;
    if (!atomic_compare_exchange_strong(&sj_stub_areas.ranges[index].bytes, &none, bytes)) {
        return false;
    }
    atomic_store_explicit(&sj_stub_areas.ranges[index].low, low, memory_order_release);
    return true;
}

void sj_stub_areas_add(const void *area, uint64_t bytes)
{
    const uint64_t low = (uint64_t)(uintptr_t)area;
    widen_bounds(low, low + bytes);
    for (uint32_t i = 0; i < SJ_STUB_RANGES; i++) {
        uint32_t used = atomic_load(&sj_stub_areas.count);
        if (i == used) {
            atomic_compare_exchange_strong(&sj_stub_areas.count, &used, used + 1);
        }
        if (claim_entry(i, low, bytes)) {
            return;
        }
    }
}

void sj_stub_areas_remove(const void *area)
{
    const uint64_t low = (uint64_t)(uintptr_t)area;
    const uint32_t count = atomic_load(&sj_stub_areas.count);
    for (uint32_t i = 0; i < count && low != 0; i++) {
        if (atomic_load(&sj_stub_areas.ranges[i].low) == low) {
            atomic_store(&sj_stub_areas.ranges[i].low, 0);
            atomic_store(&sj_stub_areas.ranges[i].bytes, 0);
            return;
        }
    }
}

uint64_t sj_stub_areas_find(uint64_t pc, uint64_t *bytes)
{
    if (pc < atomic_load_explicit(&lowest, memory_order_relaxed) ||
        pc >= atomic_load_explicit(&highest, memory_order_relaxed)) {
        return 0;
    }
    const uint32_t count = atomic_load_explicit(&sj_stub_areas.count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t low =
            atomic_load_explicit(&sj_stub_areas.ranges[i].low, memory_order_acquire);
        *bytes = atomic_load_explicit(&sj_stub_areas.ranges[i].bytes, memory_order_acquire);
        if (low != 0 && pc - low < *bytes && atomic_load(&sj_stub_areas.ranges[i].low) == low) {
            return low;
        }
    }
    return 0;
}

/* Copies bytes of this process: the sj_stub_read of its own areas. */
static bool read_memory(void *context, uint64_t address, void *bytes, uint32_t count)
{
    (void)context;
    memcpy(bytes, (const void *)(uintptr_t)address, count);
    return true;
}

bool sj_stubs_find(uint64_t pc, uint64_t *low, uint64_t *bytes, sj_stub_place *place)
{
    *low = sj_stub_areas_find(pc, bytes);
    return *low != 0 && sj_stub_find(*low, *bytes, pc, read_memory, NULL, place);
}

bool sj_stubs_leave(sj_stub_state *state)
{
    uint64_t bytes;
    const uint64_t low = sj_stub_areas_find(state->pc, &bytes);
    return low != 0 && sj_stub_leave(low, bytes, read_memory, NULL, state);
}
