/* What the recorder's own files share. */
#ifndef SJ_AGENT_INPROC_RECORDER_INTERNAL_H
#define SJ_AGENT_INPROC_RECORDER_INTERNAL_H

#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

/* What a forked child finds wiped, with or without our fork handlers. */
typedef struct sj_fork_page {
    _Atomic uint32_t usable_mask; /* SJ_USABLE_MASK; the probes' test of an address goes by it */
    _Atomic uint32_t is_own;      /* 1 */
} sj_fork_page;

/* The process-wide state, written by sj_recorder_start only. */
typedef struct sj_recorder_state {
    _Atomic uint32_t armed;
    sj_fork_page *fork_page; /* the kernel zeroes it in a forked child */
    uint32_t owner_pid;      /* if it does not: the process that records; else 0 */
    sj_arena_header *arena;  /* base of the mapping */
    uint64_t arena_bytes;
    bool follows_forks;           /* forked children are to be recorded */
    const char *directory;        /* its file's */
    _Atomic uint64_t slot_counts; /* sj_recorder_slot_counts */
    _Atomic uint32_t has_marks;   /* the pages of marks have memory */
    sj_thread_slot *slots;
    _Atomic uint32_t next_slot;       /* where the search for a free one begins */
    _Atomic uint32_t is_confined;     /* forked from a process that was: no arena says so here */
    const uint8_t *counted_functions; /* in the arena; NULL: no calls are counted */
    _Atomic uint32_t calling;         /* threads between sj_recorder_begin_calls and _end_calls */
} sj_recorder_state;

extern sj_recorder_state sj_recorder __attribute__((visibility("hidden")));

/* sj_recorder_usable: a reserved address can hold a record. The same test as in the stubs: none can
 * in a forked child that has not noticed it yet. */
static inline bool sj_recorder_usable(uint64_t address)
{
    return (address & atomic_load_explicit(sj_recorder_usable_mask, memory_order_relaxed)) != 0;
}

/* sj_recorder_slot_counts joins two counts that change together: slots in front whose chunks are
 * mapped, and those of them whose own pages have memory. */
static inline uint64_t sj_recorder_slot_counts(uint32_t most, uint32_t backed)
{
    return (uint64_t)most << 32 | backed;
}

static inline uint32_t sj_recorder_most_of(uint64_t slot_counts)
{
    return (uint32_t)(slot_counts >> 32);
}

static inline uint32_t sj_recorder_backed_of(uint64_t slot_counts)
{
    return (uint32_t)slot_counts;
}

/* sj_recorder_slots_backed returns how many slots in front may be touched. */
static inline uint32_t sj_recorder_slots_backed(void)
{
    const uint64_t counts = atomic_load_explicit(&sj_recorder.slot_counts, memory_order_acquire);
    const uint32_t backed = sj_recorder_backed_of(counts);
    const uint32_t most = sj_recorder_most_of(counts);
    return backed < most ? backed : most;
}

/* sj_recorder_unmap_arena unmaps the arena, and leaves alone what was given back of it before. */
void sj_recorder_unmap_arena(void) __attribute__((visibility("hidden")));

/* sj_recorder_add counts, for readers that need no order. */
static inline void sj_recorder_add(_Atomic uint64_t *counter, uint64_t count)
{
    atomic_fetch_add_explicit(counter, count, memory_order_relaxed);
}

/* sj_recorder_is_forked: this process inherited the recorder by a fork without our fork handlers. A
 * vfork child shares its parent's memory and is not one. */
static inline bool sj_recorder_is_forked(void)
{
    return atomic_load_explicit(&sj_recorder.fork_page->is_own, memory_order_relaxed) == 0 ||
           (sj_recorder.owner_pid != 0 && sj_recorder.owner_pid != sj_sys_pid());
}

/* sj_recorder_has_forked is true in the child of a fork that a signal handler has made since the
 * thread's `forks` was this. Makes a system call in emulators only. Async-signal-safe. */
static inline bool sj_recorder_has_forked(const sj_recorder_thread *self, uint32_t forks)
{
    return self->forks != forks || sj_recorder_is_forked();
}

/* Bounds of a stack; 0, 0: unknown. */
typedef struct sj_stack_bounds {
    uint64_t low;
    uint64_t high;
    bool is_own; /* it is the thread's, not a coroutine's or a handler's: as far as is known */
} sj_stack_bounds;

/* sj_recorder_find_stack finds the bounds of the stack that the calling thread runs on. */
sj_stack_bounds sj_recorder_find_stack(void);

/* sj_recorder_back_pages gives at most SJ_CHUNK_BYTES of the arena their memory; false: there is
 * none left. Makes a system call. */
bool sj_recorder_back_pages(void *address, uint64_t bytes);

/* sj_recorder_back does so for a thread that has `chunks` chunks with memory: where little is left,
 * a thread that has some gets no more. Counts what it refuses, and refuses for some milliseconds
 * from then on. Where no call may be made, true as long as nothing was refused. */
bool sj_recorder_back(sj_recorder_thread *self, void *address, uint64_t bytes, uint32_t chunks);

/* sj_recorder_claim gives the calling thread a slot; false when none is free. */
bool sj_recorder_claim(sj_recorder_thread *self);

/* sj_recorder_forget_wait takes the calling thread out of the counters of a wait that a signal
 * handler has left by longjmp. */
void sj_recorder_forget_wait(sj_recorder_thread *self);

/* sj_recorder_wait_for_slot waits, as the policy allows, for a slot whose thread has ended; true
 * when the calling thread has got one. False in the child of a handler that forked meanwhile. */
bool sj_recorder_wait_for_slot(sj_recorder_thread *self);

/* sj_recorder_find_handler finds the innermost frame of a handler on the stack of the calling
 * thread, but for that at `known`, and returns where it is; 0: none; SJ_UNKNOWN_HANDLER: the stack
 * cannot be looked through. Makes system calls. */
#define SJ_UNKNOWN_HANDLER UINT64_MAX
uint64_t sj_recorder_find_handler(sj_stack_bounds stack, uint64_t known);

/* sj_recorder_wait waits for a free chunk for as long as the policy allows; true when there is one.
 * False in the child of a handler that forked meanwhile: sj_recorder_has_forked tells. */
bool sj_recorder_wait(sj_recorder_thread *self);

/* sj_recorder_count_window counts and zeroes the discarded records of the thread, except for the
 * entries of calls that are open: it keeps those, as many as half of the window holds. */
void sj_recorder_count_window(sj_recorder_thread *self);

/* sj_recorder_put_open writes at `address`, behind the notes about dropped records (`has_dropped`:
 * there are some), what is known of the open calls; returns the end. Empties the window of kept
 * entries. */
uint64_t sj_recorder_put_open(sj_recorder_thread *self, uint64_t address, uint64_t ticks,
                              bool has_dropped);

/* sj_recorder_arm_window points the cursor into the thread's discard window; false when it has no
 * room (a probe was interrupted on its last record): the current record is dropped alone. */
bool sj_recorder_arm_window(sj_recorder_thread *self);

/* sj_recorder_arm_void points the cursor at the last `records` records of memory that nobody
 * reads. */
void sj_recorder_arm_void(sj_recorder_thread *self, uint32_t records);

/* sj_recorder_count_drop counts events into the thread's totals and into its next notes. The thread
 * has a slot. */
void sj_recorder_count_drop(sj_recorder_thread *self, uint64_t calls, uint64_t events);

/* sj_recorder_advance_aligned is sj_recorder_advance for a thread that writes short records. */
uint64_t sj_recorder_advance_aligned(sj_recorder_thread *self, uint64_t bytes);

/* sj_recorder_advance moves the cursor behind so many bytes of whole records and returns where they
 * begin. */
static inline uint64_t sj_recorder_advance(sj_recorder_thread *self, uint64_t bytes)
{
    return self->counting.span == 0 ? sj_arch_reserve(&self->cursor, bytes)
                                    : sj_recorder_advance_aligned(self, bytes);
}

/* sj_recorder_begin_counting makes a thread that has claimed a slot one that counts calls, if the
 * recording does; sj_recorder_end_counting makes it one that does not. sj_recorder_forget_place
 * makes its next record a whole one. */
void sj_recorder_begin_counting(sj_recorder_thread *self);
void sj_recorder_end_counting(sj_recorder_thread *self);
void sj_recorder_forget_place(sj_recorder_thread *self);

/* sj_recorder_reserve gives the calling thread a record to write outside of a probe. */
static inline uint64_t sj_recorder_reserve(uint32_t tag)
{
    const uint64_t address = sj_recorder_advance(&sj_recorder_self, SJ_RECORD_BYTES);
    return sj_recorder_usable(address) ? address : sj_recorder_slow(tag);
}

/* sj_recorder_reserve_at_once is that for a thread that must not wait. */
static inline uint64_t sj_recorder_reserve_at_once(uint32_t tag)
{
    const uint64_t address = sj_recorder_advance(&sj_recorder_self, SJ_RECORD_BYTES);
    return sj_recorder_usable(address) ? address : sj_recorder_slow_at_once(tag);
}

/* sj_recorder_put_value writes a record of a value; its tag is that of an SJ_RECORD_VALUE. */
static inline void sj_recorder_put_value(uint32_t tag, uint64_t stack, uint8_t descriptor,
                                         sj_record_part part, uint64_t value)
{
    const uint64_t address = sj_recorder_reserve(tag);
    volatile uint32_t *words = (volatile uint32_t *)address;
    words[0] = (uint32_t)value;
    words[1] = (uint32_t)(value >> 32);
    words[2] = ((uint32_t)stack & SJ_RECORD_VALUE_STACK_MASK) | part | (uint32_t)descriptor << 24;
    /* A tag other than 0 means a complete record. */
    atomic_store_explicit((_Atomic uint32_t *)(address + 12), tag, memory_order_release);
}

/* sj_recorder_put writes a whole record. */
static inline void sj_recorder_put(uint64_t address, uint64_t ticks, uint64_t stack, uint32_t tag)
{
    volatile uint8_t *record = (volatile uint8_t *)address;
    *(volatile uint32_t *)record = (uint32_t)ticks;
    *(volatile uint16_t *)(record + 4) = (uint16_t)(ticks >> 32);
    *(volatile uint16_t *)(record + 6) = (uint16_t)stack;
    *(volatile uint32_t *)(record + 8) = (uint32_t)(stack >> 16);
    /* A tag other than 0 means a complete record. */
    atomic_store_explicit((_Atomic uint32_t *)(address + 12), tag, memory_order_release);
}

#endif
