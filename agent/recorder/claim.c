#include "agent/recorder/internal.h"
#include "agent/recorder/maps.h"
#include "agent/recorder/sys.h"

#include <sys/prctl.h>
#include <sys/resource.h>

/* Bounds of the mapping that the thread runs on; the main thread's may still grow to its limit. */
static void find_stack(sj_thread_slot *slot)
{
    const uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    sj_maps maps;
    sj_mapping mapping;
    if (!sj_maps_open(&maps)) {
        return;
    }
    while (sj_maps_next(&maps, &mapping)) {
        if (here < mapping.low || here >= mapping.high) {
            continue;
        }
        slot->stack_low = mapping.low;
        slot->stack_high = mapping.high;
        struct rlimit limit;
        if (mapping.is_stack && SJ_SYS(SYS_prlimit64, 0, RLIMIT_STACK, NULL, &limit, 0, 0) == 0 &&
            limit.rlim_cur > mapping.high - mapping.low && limit.rlim_cur < mapping.high) {
            slot->stack_low = mapping.high - limit.rlim_cur;
        }
        break;
    }
    sj_maps_close(&maps);
}

static void fill_slot(sj_thread_slot *slot)
{
    slot->tid = sj_sys_tid();
    slot->start_ticks = sj_arch_ticks();
    slot->stack_low = 0;
    slot->stack_high = 0;
    for (size_t i = 0; i < sizeof(slot->name); i++) {
        slot->name[i] = '\0';
    }
    if (sj_recorder_may_call()) {
        find_stack(slot);
        (void)SJ_SYS(SYS_prctl, PR_GET_NAME, slot->name, 0, 0, 0, 0);
    }
    atomic_store_explicit(&slot->chunk_sequence, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->dropped_calls, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->dropped_events, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->waited_ticks, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->unregistered, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->has_left, 0, memory_order_relaxed);
}

bool sj_recorder_claim(sj_recorder_thread *self)
{
    for (uint32_t i = 0; i < sj_recorder.arena->max_threads; i++) {
        sj_thread_slot *slot = &sj_recorder.slots[i];
        uint32_t expected = SJ_THREAD_FREE;
        if (atomic_load_explicit(&slot->state, memory_order_relaxed) == SJ_THREAD_FREE &&
            atomic_compare_exchange_strong_explicit(&slot->state, &expected, SJ_THREAD_CLAIMED,
                                                    memory_order_acquire, memory_order_relaxed)) {
            fill_slot(slot);
            /* Pairs with the consumer's acquire load of the state. */
            atomic_store_explicit(&slot->state, SJ_THREAD_LIVE, memory_order_release);
            self->window_low = 0;
            self->slot = slot;
            return true;
        }
    }
    return false;
}
