/* What the recorder's own files share. */
#ifndef SJ_AGENT_RECORDER_INTERNAL_H
#define SJ_AGENT_RECORDER_INTERNAL_H

#include "agent/recorder/recorder.h"
#include "agent/recorder/sys.h"

/* The process-wide state, written by sj_recorder_start only. */
typedef struct sj_recorder_state {
    _Atomic uint32_t armed;
    _Atomic uint32_t *fork_mark; /* 1; the kernel zeroes its page in a forked child */
    uint32_t owner_pid;          /* where it does not: the process that records; else 0 */
    sj_arena_header *arena;      /* base of the mapping */
    uint64_t arena_bytes;
    sj_thread_slot *slots;
} sj_recorder_state;

extern sj_recorder_state sj_recorder __attribute__((visibility("hidden")));

/* sj_recorder_usable tells whether a reserved address can hold a record: the stubs' test. */
static inline bool sj_recorder_usable(uint64_t address)
{
    return (address & 0xf000) != 0;
}

/* sj_recorder_is_forked tells whether this process inherited the recorder by a fork that no
 * handler of ours saw. A vfork child shares its parent's memory and is not one. */
static inline bool sj_recorder_is_forked(void)
{
    return atomic_load_explicit(sj_recorder.fork_mark, memory_order_relaxed) == 0 ||
           (sj_recorder.owner_pid != 0 && sj_recorder.owner_pid != sj_sys_pid());
}

/* sj_recorder_claim gives the calling thread a slot; false when none is free. */
bool sj_recorder_claim(sj_recorder_thread *self);

/* sj_recorder_wait waits for a free chunk as the policy allows; true when there is one. */
bool sj_recorder_wait(sj_recorder_thread *self);

/* sj_recorder_count_window counts and zeroes the discarded records of the thread. */
void sj_recorder_count_window(sj_recorder_thread *self);

/* sj_recorder_arm_window points the cursor into the thread's discard window; false when it has no
 * room (a probe was interrupted on its last record): the record at hand is dropped by itself. */
bool sj_recorder_arm_window(sj_recorder_thread *self);

/* sj_recorder_arm_void points the cursor at the last `records` records of memory that nobody
 * reads. */
void sj_recorder_arm_void(sj_recorder_thread *self, uint32_t records);

/* sj_recorder_count_drop counts events into the thread's totals and into its next notes. */
void sj_recorder_count_drop(sj_recorder_thread *self, uint64_t calls, uint64_t events);

/* sj_recorder_put writes a whole record. */
void sj_recorder_put(uint64_t address, uint64_t ticks, uint64_t stack, uint32_t tag);

#endif
