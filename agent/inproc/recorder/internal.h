/* Internal header of the recorder. */
#ifndef SJ_AGENT_INPROC_RECORDER_INTERNAL_H
#define SJ_AGENT_INPROC_RECORDER_INTERNAL_H

#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"
#include "agent/inproc/recorder/write.h"

/* A page that the kernel zeroes in a forked child, with or without our fork handlers. */
typedef struct sj_fork_page {
    _Atomic uint32_t usable_mask; /* SJ_USABLE_MASK; the probes test reserved addresses with it */
    _Atomic uint32_t is_own;      /* 1 */
} sj_fork_page;

/* The process-wide state. sj_recorder_start sets it; fields that change later are atomic. */
typedef struct sj_recorder_state {
    _Atomic uint32_t armed;
    sj_fork_page *fork_page; /* zeroed by the kernel in a forked child */
    /* process that records, where the kernel does not zero the fork page (emulators); else 0 */
    uint32_t owner_pid;
    sj_arena_header *arena; /* base of the mapping */
    uint64_t arena_bytes;
    bool follows_forks;           /* true if forked children are recorded */
    const char *directory;        /* directory of the arena's file */
    _Atomic uint64_t slot_counts; /* sj_recorder_slot_counts */
    _Atomic uint32_t has_marks;   /* 1 if the pages of the marks have memory */
    sj_thread_slot *slots;
    _Atomic uint32_t next_slot; /* where the search for a free slot begins */
    /* 1 in a child that was forked from a confined process; used while there is no arena */
    _Atomic uint32_t is_confined;
    const uint8_t *counted_functions; /* in the arena; NULL: no calls are counted */
    _Atomic uint32_t calling;         /* threads between sj_recorder_begin_calls and _end_calls */
} sj_recorder_state;

extern sj_recorder_state sj_recorder __attribute__((visibility("hidden")));

/* Joins two counts that must change together. `most`: the leading slots whose chunks are mapped.
 * `backed`: how many of these slots have memory for their own pages. */
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

/* Returns how many leading slots may be accessed. */
static inline uint32_t sj_recorder_slots_backed(void)
{
    const uint64_t counts = atomic_load_explicit(&sj_recorder.slot_counts, memory_order_acquire);
    const uint32_t backed = sj_recorder_backed_of(counts);
    const uint32_t most = sj_recorder_most_of(counts);
    return backed < most ? backed : most;
}

/* Unmaps the arena, except for the part that sj_recorder_limit_space has unmapped before. */
void sj_recorder_unmap_arena(void) __attribute__((visibility("hidden")));

/* Replaces the arena by private memory that reads as 0: interrupted code may still use the arena's
 * addresses. If the kernel refuses the memory, the arena stays mapped. */
void sj_recorder_replace_arena(void) __attribute__((visibility("hidden")));

/* Adds to a counter, without ordering other memory accesses. */
static inline void sj_recorder_add(_Atomic uint64_t *counter, uint64_t count)
{
    atomic_fetch_add_explicit(counter, count, memory_order_relaxed);
}

/* True if this process inherited the recorder by a fork that ran none of our fork handlers. A vfork
 * child shares its parent's memory; the result there is false. */
static inline bool sj_recorder_is_forked(void)
{
    return atomic_load_explicit(&sj_recorder.fork_page->is_own, memory_order_relaxed) == 0 ||
           (sj_recorder.owner_pid != 0 && sj_recorder.owner_pid != sj_sys_pid());
}

/* True in the child of a fork that a signal handler made since the thread's `forks` had this value.
 * Makes a system call in emulators only. Async-signal-safe. */
static inline bool sj_recorder_has_forked(const sj_recorder_thread *self, uint32_t forks)
{
    return self->forks != forks || sj_recorder_is_forked();
}

/* Bounds of a stack, low to high; 0, 0: unknown. */
typedef struct sj_stack_bounds {
    uint64_t low;
    uint64_t high;
    /* True if the control block or the mapping shows that the stack is the thread's own. False for
     * the stack of a coroutine or a signal handler. */
    bool is_own;
} sj_stack_bounds;

/* Returns the bounds of the stack that the calling thread runs on. May make system calls. */
sj_stack_bounds sj_recorder_find_stack(void);

/* Allocates the memory of at most SJ_CHUNK_BYTES of the arena. Returns false if the file system is
 * full. Makes a system call. */
bool sj_recorder_back_pages(void *address, uint64_t bytes);

/* Does the same as sj_recorder_back_pages for a thread that has `chunks` chunks with memory. If
 * little memory is left, a thread that has chunks gets no further one.
 *
 * Counts each refusal. After a refusal, refuses without a system call for some milliseconds.
 * In a confined process, makes no system call and returns true unless the arena is marked as
 * full. */
bool sj_recorder_back(sj_recorder_thread *self, void *address, uint64_t bytes, uint32_t chunks);

/* Gives the calling thread a slot. Returns false if all slots are in use, or if there is no memory
 * for further ones. */
bool sj_recorder_claim(sj_recorder_thread *self);

/* Removes the calling thread from the counters of a wait that a signal handler has left by
 * longjmp. */
void sj_recorder_forget_wait(sj_recorder_thread *self);

/* Waits, as the policy allows, for the slot of a thread that has ended. Returns true if the calling
 * thread has got a slot. Returns false in the child of a handler that forked during the wait. */
bool sj_recorder_wait_for_slot(sj_recorder_thread *self);

/* Returns the address of the innermost signal handler's frame on `stack`, the calling thread's
 * stack. Skips the frame at `known`. Returns 0 if there is none, SJ_UNKNOWN_HANDLER if the stack
 * cannot be searched. Makes system calls. */
#define SJ_UNKNOWN_HANDLER UINT64_MAX
uint64_t sj_recorder_find_handler(sj_stack_bounds stack, uint64_t known);

/* Waits for a free chunk, for as long as the policy allows. Returns true if there is one. Returns
 * false in the child of a handler that forked during the wait; see sj_recorder_has_forked. */
bool sj_recorder_wait(sj_recorder_thread *self);

/* Counts and zeroes the records in the thread's discard window. Keeps the entries of calls that are
 * still open, in at most half of the window. */
void sj_recorder_count_window(sj_recorder_thread *self);

/* Writes, at `address`, which open calls have ended among the dropped records, and the kept entries
 * of calls that are still open. If `has_dropped`, notes about dropped records precede that address.
 * Returns the end of what it wrote. Removes the kept entries from the window. */
uint64_t sj_recorder_put_open(sj_recorder_thread *self, uint64_t address, uint64_t ticks,
                              bool has_dropped);

/* True if `here` lies on the alternate stack of the last signal handler, and that stack lies inside
 * the thread's own stack. After a handler was left by longjmp, this stays true for addresses in
 * that range until sj_recorder_put_alternate notices it or the next handler begins. */
bool sj_recorder_is_on_alternate(const sj_recorder_thread *self, uint64_t here);

/* Writes the notes about an alternate stack at `address`. Does so only if the calling thread runs
 * on an alternate stack inside its own stack, and its chunks do not have these notes. `is_first`:
 * the thread has no older chunk. Returns the end of what it wrote. If the thread runs elsewhere on
 * its own stack, the handler was left by longjmp, and this function forgets it. */
uint64_t sj_recorder_put_alternate(sj_recorder_thread *self, uint64_t address, bool is_first);

/* Points the cursor into the thread's discard window. Returns false if the window has no memory or
 * is full because a probe was interrupted on its last record. The caller then drops the current
 * record alone. */
bool sj_recorder_arm_window(sj_recorder_thread *self);

/* Points the cursor at the last `records` records of a trash area, which is never read. */
void sj_recorder_arm_void(sj_recorder_thread *self, uint32_t records);

/* Adds dropped calls and events to the thread's totals and to its next notes. The thread has a
 * slot. */
void sj_recorder_count_drop(sj_recorder_thread *self, uint64_t calls, uint64_t events);

/* sj_recorder_begin_counting enables call counting for a thread that has a slot, if the recording
 * counts calls. sj_recorder_end_counting disables it. sj_recorder_forget_place makes the thread's
 * next record a whole one. */
void sj_recorder_begin_counting(sj_recorder_thread *self);
void sj_recorder_end_counting(sj_recorder_thread *self);
void sj_recorder_forget_place(sj_recorder_thread *self);

#endif
