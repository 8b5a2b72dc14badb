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

/* The words of a place with short records, if all of them are written. */
static bool count_shorts(uint64_t record, uint64_t *calls, uint64_t *events)
{
    uint64_t entered = 0;
    uint64_t found = 0;
    for (uint32_t i = 0; i < SJ_SHORTS; i++) {
        const uint32_t word = *(const volatile uint32_t *)(record + (uint64_t)i * SJ_SHORT_BYTES);
        if (word == 0) {
            return false;
        }
        found += sj_short_function(word) != 0;
        entered += sj_short_function(word) != 0 && !sj_short_is_exit(word);
    }
    for (uint32_t i = 0; i < SJ_SHORTS; i++) {
        *(volatile uint32_t *)(record + (uint64_t)i * SJ_SHORT_BYTES) = 0;
    }
    *calls += entered;
    *events += found;
    return true;
}

/* Counts and zeroes what a place of the window holds; false when it is not written yet. */
static bool count_place(uint64_t record, uint64_t *calls, uint64_t *events)
{
    _Atomic uint32_t *tag_word = (_Atomic uint32_t *)(record + 12);
    const uint32_t tag = atomic_load_explicit(tag_word, memory_order_relaxed);
    if (sj_word_is_short(tag)) {
        return count_shorts(record, calls, events);
    }
    if (tag == 0) {
        return false;
    }
    *events += 1;
    *calls += sj_record_calls(tag);
    /* All of it: what is left of a time or a stack would look like short records. */
    atomic_store_explicit(tag_word, 0, memory_order_relaxed);
    for (uint32_t i = 0; i + 1 < SJ_SHORTS; i++) {
        *(volatile uint32_t *)(record + (uint64_t)i * SJ_SHORT_BYTES) = 0;
    }
    return true;
}

void sj_recorder_count_window(sj_recorder_thread *self)
{
    const uint64_t start = window_start(self);
    uint64_t calls = 0;
    uint64_t events = 0;
    if (!self->has_window) {
        return;
    }
    self->window_low = start;
    for (uint32_t i = 0; i < SJ_DISCARD_RECORDS; i++) {
        const uint64_t record = start + (uint64_t)i * SJ_RECORD_BYTES;
        if (!count_place(record, &calls, &events)) {
            self->window_low = record + SJ_RECORD_BYTES;
        }
    }
    sj_recorder_count_drop(self, calls, events);
}

bool sj_recorder_arm_window(sj_recorder_thread *self)
{
    const uint64_t start = window_start(self);
    if (!self->has_window) {
        self->has_window = sj_recorder_back(self, (void *)(uintptr_t)start,
                                            SJ_DISCARD_RECORDS * SJ_RECORD_BYTES, 0);
    }
    if (!self->has_window) {
        return false;
    }
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
