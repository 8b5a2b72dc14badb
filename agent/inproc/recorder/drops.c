#include "agent/inproc/recorder/internal.h"
#include "agent/inproc/recorder/sys.h"

/* Memory that nobody reads, with room for one chunk at an aligned address. Shared by all threads
 * that cannot or must not record. */
static uint8_t void_room[2 * SJ_CHUNK_BYTES];

static uint64_t window_start(const sj_recorder_thread *self)
{
    const uint32_t thread = (uint32_t)(self->slot - sj_recorder.slots);
    return (uint64_t)(uintptr_t)sj_recorder.arena +
           sj_arena_discard_offset(sj_recorder.arena->max_threads,
                                   sj_recorder.arena->chunks_per_thread, thread);
}

void sj_recorder_count_drop(sj_recorder_thread *self, uint64_t calls, uint64_t events)
{
    self->drop_calls += calls;
    self->drop_events += events;
    sj_recorder_add(&self->slot->dropped_calls, calls);
    sj_recorder_add(&self->slot->dropped_events, events);
}

void sj_recorder_count_window(sj_recorder_thread *self)
{
    const uint64_t start = window_start(self);
    uint64_t calls = 0;
    uint64_t events = 0;
    self->window_low = start;
    for (uint32_t i = 0; i < SJ_DISCARD_RECORDS; i++) {
        const uint64_t record = start + (uint64_t)i * SJ_RECORD_BYTES;
        _Atomic uint32_t *tag_word = (_Atomic uint32_t *)(record + 12);
        const uint32_t tag = atomic_load_explicit(tag_word, memory_order_relaxed);
        if (tag != 0) {
            events++;
            calls += sj_record_calls(tag);
            atomic_store_explicit(tag_word, 0, memory_order_relaxed);
        } else if (record >= self->window_low) {
            self->window_low = record + SJ_RECORD_BYTES;
        }
    }
    sj_recorder_count_drop(self, calls, events);
}

bool sj_recorder_arm_window(sj_recorder_thread *self)
{
    const uint64_t start = window_start(self);
    const uint64_t end = start + SJ_DISCARD_RECORDS * SJ_RECORD_BYTES;
    if (self->window_low < start || self->window_low > end) {
        self->window_low = start;
    }
    if (self->window_low == end) {
        return false;
    }
    atomic_signal_fence(memory_order_seq_cst);
    self->cursor = self->window_low;
    return true;
}

void sj_recorder_arm_void(sj_recorder_thread *self, uint32_t records)
{
    const uint64_t aligned =
        ((uint64_t)(uintptr_t)void_room + SJ_CHUNK_BYTES - 1) & ~(uint64_t)(SJ_CHUNK_BYTES - 1);
    self->cursor = aligned + SJ_CHUNK_BYTES - (uint64_t)records * SJ_RECORD_BYTES;
}
