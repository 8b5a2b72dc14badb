/* Design notes
 *
 * The cursor of a thread that writes short records may point into the middle of a 16-byte slot. A
 * thread that reserves a whole record also reserves the rest of this slot, with the same
 * instruction, and writes fillers into it. So each word is written by the probe that reserved it,
 * whatever signal handlers do in between. A slot is complete as soon as a record follows it. */
#include "agent/inproc/recorder/internal.h"

bool sj_recorder_counts_calls(void)
{
    return sj_recorder.counted_functions != NULL;
}

void sj_recorder_end_counting(sj_recorder_thread *self)
{
    self->counting.reach = 0;
    self->counting.span = 0;
    atomic_signal_fence(memory_order_seq_cst);
}

void sj_recorder_begin_counting(sj_recorder_thread *self)
{
    const sj_thread_slot *slot = self->slot;
    sj_recorder_end_counting(self);
    self->counting.countdown = 0;
    self->counting.open_samples = 0;
    if (sj_recorder.counted_functions == NULL || !self->has_own_stack) {
        return;
    }
    self->counting.low = slot->stack_low;
    self->counting.functions = sj_recorder.counted_functions;
    self->counting.random = (uint32_t)slot->start_ticks | 1;
    self->counting.span =
        slot->stack_high > slot->stack_low ? slot->stack_high - slot->stack_low : 0;
}

void sj_recorder_forget_place(sj_recorder_thread *self)
{
    self->counting.reach = 0;
}

uint64_t sj_recorder_advance_aligned(sj_recorder_thread *self, uint64_t bytes)
{
    const uint64_t mask = SJ_RECORD_BYTES - 1;
    uint64_t from = self->cursor;
    while (!__atomic_compare_exchange_n(&self->cursor, &from, ((from + mask) & ~mask) + bytes,
                                        false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    const uint64_t address = (from + mask) & ~mask;
    for (; from != address && sj_recorder_usable(from); from += SJ_SHORT_BYTES) {
        *(volatile uint32_t *)from = SJ_SHORT_FILLER;
    }
    return address;
}
