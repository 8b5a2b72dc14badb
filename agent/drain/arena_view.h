/* The arena view: the consumer's mapping of one process's arena (recorder/arena.h).
 *
 * The arena is written by a foreign program that may be going wrong: its geometry is read once and
 * checked, and nothing in it is ever used as an address. */
#ifndef SJ_AGENT_DRAIN_ARENA_VIEW_H
#define SJ_AGENT_DRAIN_ARENA_VIEW_H

#include "agent/abi/arena.h"
#include "agent/abi/record.h"
#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct sj_arena_view {
    int fd;
    uint8_t *base;
    size_t bytes;
    uint32_t max_threads;
    uint32_t chunks_per_thread;
    uint32_t slots_backed; /* slots in front whose pages have memory */
    bool counts_slots;     /* the arena has `slots_begun` */
    bool has_counted;      /* and sj_arena_view_counted */
    bool has_distances;    /* in its short records */
} sj_arena_view;

/* sj_arena_view_open maps the arena at `path`. SJ_EAGAIN: not there or not written yet;
 * SJ_ECORRUPT, SJ_EVERSION, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_arena_view_open(const char *path, sj_arena_view *view);
void sj_arena_view_close(sj_arena_view *view);

/* sj_arena_view_back makes sure that a part of the file has memory: to touch a hole of a full file
 * system is a SIGBUS. False: it has none. */
bool sj_arena_view_back(const sj_arena_view *view, uint64_t offset, uint64_t bytes);

/* sj_arena_view_slots_begun returns below which slot all lie that were ever claimed and may be
 * touched. */
uint32_t sj_arena_view_slots_begun(sj_arena_view *view);

static inline sj_arena_header *sj_arena_view_header(const sj_arena_view *view)
{
    return (sj_arena_header *)(void *)view->base;
}

static inline sj_thread_slot *sj_arena_view_slot(const sj_arena_view *view, uint32_t slot)
{
    return (sj_thread_slot *)(void *)(view->base + SJ_ARENA_HEADER_BYTES) + slot;
}

/* sj_arena_view_mark borrows a mark; an empty one, if its page has no memory. */
const sj_arena_mark *sj_arena_view_mark(const sj_arena_view *view, uint32_t mark);

static inline sj_chunk_header *sj_arena_view_chunk(const sj_arena_view *view, uint32_t slot,
                                                   uint32_t chunk)
{
    return (sj_chunk_header *)(void *)(view->base + sj_arena_chunk_offset(view->max_threads,
                                                                          view->chunks_per_thread,
                                                                          slot, chunk));
}

static inline sj_record *sj_arena_chunk_records(sj_chunk_header *chunk)
{
    return (sj_record *)(void *)((uint8_t *)chunk + SJ_CHUNK_HEADER_BYTES);
}

/* sj_arena_record_tag reads a record's tag before its other bytes; 0: not written yet. */
static inline uint32_t sj_arena_record_tag(const sj_record *record)
{
    /* Pairs with the producer, which writes the tag last. */
    return atomic_load_explicit((const _Atomic uint32_t *)(const void *)(record->bytes + 12),
                                memory_order_acquire);
}

/* sj_arena_place_is_written: a place holds a whole record, or short records in all of its parts. */
static inline bool sj_arena_place_is_written(const sj_record *place)
{
    const uint32_t tag = sj_arena_record_tag(place);
    bool is_written = tag != 0;
    for (uint32_t i = 0; sj_word_is_short(tag) && i + 1 < SJ_SHORTS; i++) {
        is_written =
            is_written && atomic_load_explicit((const _Atomic uint32_t *)(const void *)place + i,
                                               memory_order_acquire) != 0;
    }
    return is_written;
}

/* sj_arena_view_release gives a chunk that was read completely back to its thread: zeroes it, sets
 * its bit and wakes threads that wait for one. */
void sj_arena_view_release(const sj_arena_view *view, uint32_t slot, uint32_t chunk);

/* sj_arena_view_data_end returns from where on, between the offsets `start` and `end` of the file,
 * no page was ever written: to read one would allocate it. */
uint64_t sj_arena_view_data_end(const sj_arena_view *view, uint64_t start, uint64_t end);

/* sj_arena_view_stack gives the bounds of a thread's own stack; 0, 0 when they are not known, or
 * cannot be: the program may have written anywhere. */
static inline void sj_arena_view_stack(const sj_thread_slot *slot, uint64_t *low, uint64_t *high)
{
    const bool is_sound = slot->stack_low <= slot->stack_high;
    *low = is_sound ? slot->stack_low : 0;
    *high = is_sound ? slot->stack_high : 0;
}

/* sj_arena_view_discarded counts what an ended thread dropped after it counted the last time. */
void sj_arena_view_discarded(const sj_arena_view *view, uint32_t slot, uint64_t *calls,
                             uint64_t *events);

/* Counts the records of a thread behind the cursor of its slot. Values and notes do not count; a
 * place that was reserved and not written counts as an event. */
void sj_arena_view_unread(const sj_arena_view *view, uint32_t slot, uint64_t *calls,
                          uint64_t *events);

/* sj_arena_view_counted borrows the bytes that say of which functions calls are counted (arena.h);
 * NULL: the arena has none. */
uint8_t *sj_arena_view_counted(const sj_arena_view *view);

/* sj_arena_view_wake wakes threads that wait for what was given back. */
void sj_arena_view_wake(const sj_arena_view *view);

/* sj_arena_view_recycle makes the slot of an ended thread free again and returns the memory of its
 * chunks to the system. Threads that wait for a slot are not woken. */
void sj_arena_view_recycle(const sj_arena_view *view, uint32_t slot);

#endif
