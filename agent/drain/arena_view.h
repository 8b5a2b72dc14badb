/* The arena view: the drain's mapping of the arena of one process (agent/abi/arena.h).
 *
 * The traced program writes the arena and may have corrupted it. Its geometry is therefore read
 * once and checked, and no content of the arena is ever used as an address. */
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
    uint32_t slots_backed; /* number of first slots whose pages have memory */
    bool counts_slots;     /* true if the arena has `slots_begun` */
    bool has_counted;      /* true if the arena has the bytes of sj_arena_view_counted */
    bool has_distances;    /* true if its short records hold distances, not addresses */
} sj_arena_view;

/* Maps the arena at `path`. Returns SJ_EAGAIN if the file cannot be opened or has no header yet,
 * SJ_ENOMEM if the file cannot be mapped now. Also returns SJ_ECORRUPT, SJ_EVERSION, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_arena_view_open(const char *path, sj_arena_view *view);
void sj_arena_view_close(sj_arena_view *view);

/* Allocates memory for a part of the arena's file. Returns false if the file system refuses: an
 * access to that part could raise SIGBUS. Returns true if the file system cannot allocate ahead. */
bool sj_arena_view_back(const sj_arena_view *view, uint64_t offset, uint64_t bytes);

/* Returns the number of slots that may be accessed: all slots up to the last one that was ever
 * claimed. Slots whose pages have no memory are left out. */
uint32_t sj_arena_view_slots_begun(sj_arena_view *view);

static inline sj_arena_header *sj_arena_view_header(const sj_arena_view *view)
{
    return (sj_arena_header *)(void *)view->base;
}

static inline sj_thread_slot *sj_arena_view_slot(const sj_arena_view *view, uint32_t slot)
{
    return (sj_thread_slot *)(void *)(view->base + SJ_ARENA_HEADER_BYTES) + slot;
}

/* Returns a mark, borrowed. The mark is empty if its page has no memory. */
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

/* Returns a record's tag; 0 if the record is not written yet. Call it before reading other bytes of
 * the record. */
static inline uint32_t sj_arena_record_tag(const sj_record *record)
{
    /* Pairs with the producer, which writes the tag last. */
    return atomic_load_explicit((const _Atomic uint32_t *)(const void *)(record->bytes + 12),
                                memory_order_acquire);
}

/* True if a place holds a full record, or short records in all of its parts. */
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

/* Returns a completely read chunk to its thread: zeroes the chunk, sets its bit in `free_chunks`
 * and wakes waiting threads (sj_arena_view_wake). */
void sj_arena_view_release(const sj_arena_view *view, uint32_t slot, uint32_t chunk);

/* Returns the file offset, at most `end`, where the last data after `start` ends. Returns `start`
 * if there is only a hole. Do not read beyond that offset: a read of a hole allocates its pages. */
uint64_t sj_arena_view_data_end(const sj_arena_view *view, uint64_t start, uint64_t end);

/* Writes the bounds of a thread's own stack. Writes 0, 0 if they are unknown or invalid. The
 * program may have overwritten them. */
static inline void sj_arena_view_stack(const sj_thread_slot *slot, uint64_t *low, uint64_t *high)
{
    const bool is_sound = slot->stack_low <= slot->stack_high;
    *low = is_sound ? slot->stack_low : 0;
    *high = is_sound ? slot->stack_high : 0;
}

/* Counts the records in the discard window of an ended thread: dropped records that the drop
 * counters of its slot do not contain yet. An entry counts as a call and as an event. */
void sj_arena_view_discarded(const sj_arena_view *view, uint32_t slot, uint64_t *calls,
                             uint64_t *events);

/* The records of a thread that were not read yet. */
typedef struct sj_unread_records {
    uint64_t calls;
    uint64_t events;
    uint64_t sequence; /* where they end, as in sj_slot_cursor */
    uint64_t position;
} sj_unread_records;

/* Counts the records of a thread that were not read yet, from the cursor of its slot on. Values and
 * notes do not count. A place that was reserved but not written counts as an event. */
sj_unread_records sj_arena_view_unread(const sj_arena_view *view, uint32_t slot);

/* Returns the table of counted functions, borrowed: one byte per function, 1 if its calls are
 * counted (agent/abi/arena.h). Returns NULL if the arena has no table or no memory for it. */
uint8_t *sj_arena_view_counted(const sj_arena_view *view);

/* Wakes the threads that wait for a chunk or a slot. */
void sj_arena_view_wake(const sj_arena_view *view);

/* Zeroes and frees the slot of an ended thread. Returns the memory of its chunks to the system if
 * there is much of it or if memory is short. Does not wake threads that wait for a slot. */
void sj_arena_view_recycle(const sj_arena_view *view, uint32_t slot);

#endif
