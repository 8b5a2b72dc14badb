#include "agent/inproc/recorder/memory.h"

#include "agent/inproc/recorder/internal.h"

__thread _Atomic uint64_t *sj_recorder_memory_place __attribute__((tls_model("initial-exec")));

/* Counters of a thread that may not write to a slot. */
static __thread _Atomic uint64_t own[SJ_SLOT_MEMORY]
    __attribute__((tls_model("initial-exec"))) = {1, 1, 1, 1};

static void copy(_Atomic uint64_t *to, const _Atomic uint64_t *from)
{
    for (size_t i = 0; i < SJ_SLOT_MEMORY; i++) {
        atomic_store_explicit(&to[i], atomic_load_explicit(&from[i], memory_order_relaxed),
                              memory_order_relaxed);
    }
}

_Atomic uint64_t *sj_recorder_find_memory(void)
{
    sj_thread_slot *slot = sj_recorder_self.slot;
    if (atomic_load_explicit(sj_recorder_owns_slots, memory_order_relaxed) == 0) {
        return own;
    }
    if (sj_recorder_memory_place == NULL) {
        const bool is_own = slot == NULL || sj_recorder_self.is_forking;
        if (!is_own) {
            copy(slot->memory, own);
        }
        sj_recorder_memory_place = is_own ? own : slot->memory;
    }
    return sj_recorder_memory_place;
}

void sj_recorder_begin_showing_memory(void)
{
    sj_recorder_memory_place = NULL;
    if (sj_recorder_is_counting_memory()) {
        (void)sj_recorder_find_memory();
    }
}

void sj_recorder_end_showing_memory(void)
{
    if (sj_recorder_memory_place != NULL && sj_recorder_memory_place != own) {
        copy(own, sj_recorder_memory_place);
    }
    sj_recorder_memory_place = own;
}
