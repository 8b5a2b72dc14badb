/* Writes records of the calling thread, for code outside of the probes that hooks/ emits. */
#ifndef SJ_AGENT_INPROC_RECORDER_WRITE_H
#define SJ_AGENT_INPROC_RECORDER_WRITE_H

#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

/* True if a reserved address can hold a record. Probes make the same test. False for every address
 * in a forked child whose recorder has not yet noticed the fork. */
static inline bool sj_recorder_usable(uint64_t address)
{
    return (address & atomic_load_explicit(sj_recorder_usable_mask, memory_order_relaxed)) != 0;
}

/* The part of sj_recorder_advance for a thread that writes short records: first moves the cursor to
 * the next multiple of a record's size, and writes filler records before it. */
uint64_t sj_recorder_advance_aligned(sj_recorder_thread *self, uint64_t bytes);

/* Reserves `bytes` bytes, a multiple of a record's size, at the cursor. Returns their address. */
static inline uint64_t sj_recorder_advance(sj_recorder_thread *self, uint64_t bytes)
{
    return self->counting.span == 0 ? sj_arch_reserve(&self->cursor, bytes)
                                    : sj_recorder_advance_aligned(self, bytes);
}

/* Returns the address of a record that the calling thread writes outside of a probe. May wait. */
static inline uint64_t sj_recorder_reserve(uint32_t tag)
{
    const uint64_t address = sj_recorder_advance(&sj_recorder_self, SJ_RECORD_BYTES);
    return sj_recorder_usable(address) ? address : sj_recorder_slow(tag);
}

/* Does the same as sj_recorder_reserve, but never waits. */
static inline uint64_t sj_recorder_reserve_at_once(uint32_t tag)
{
    const uint64_t address = sj_recorder_advance(&sj_recorder_self, SJ_RECORD_BYTES);
    return sj_recorder_usable(address) ? address : sj_recorder_slow_at_once(tag);
}

/* Writes the record of a value. `tag` has the kind SJ_RECORD_VALUE. */
static inline void sj_recorder_put_value(uint32_t tag, uint64_t stack, uint8_t descriptor,
                                         sj_record_part part, uint64_t value)
{
    const uint64_t address = sj_recorder_reserve(tag);
    volatile uint32_t *words = (volatile uint32_t *)address;
    words[0] = (uint32_t)value;
    words[1] = (uint32_t)(value >> 32);
    words[2] = ((uint32_t)stack & SJ_RECORD_VALUE_STACK_MASK) | part | (uint32_t)descriptor << 24;
    /* A nonzero tag marks a complete record. */
    atomic_store_explicit((_Atomic uint32_t *)(address + 12), tag, memory_order_release);
}

/* Writes a record of full size (SJ_RECORD_BYTES) to a reserved address. */
static inline void sj_recorder_put(uint64_t address, uint64_t ticks, uint64_t stack, uint32_t tag)
{
    volatile uint8_t *record = (volatile uint8_t *)address;
    *(volatile uint32_t *)record = (uint32_t)ticks;
    *(volatile uint16_t *)(record + 4) = (uint16_t)(ticks >> 32);
    *(volatile uint16_t *)(record + 6) = (uint16_t)stack;
    *(volatile uint32_t *)(record + 8) = (uint32_t)(stack >> 16);
    /* A nonzero tag marks a complete record. */
    atomic_store_explicit((_Atomic uint32_t *)(address + 12), tag, memory_order_release);
}

#endif
