/* The recorder: the part of the agent that owns the arena and gives each thread room to record.
 *
 * The probes that hooks/ emits reserve a record by adding 16 to the calling thread's cursor. Where
 * the address so reserved lies in the first 4 KiB of a 64 KiB chunk, they call sj_recorder_slow.
 * Nothing here touches libc, errno, vector registers (built -mgeneral-regs-only) or a lock, and
 * nothing is allocated after sj_recorder_start. */
#ifndef SJ_AGENT_INPROC_RECORDER_RECORDER_H
#define SJ_AGENT_INPROC_RECORDER_RECORDER_H

#include "agent/abi/arena.h"
#include "agent/abi/link.h"
#include "agent/abi/record.h"
#include "proto/base/status.h"

#include <stdbool.h>

/* Where a thread's cursor points. */
typedef enum sj_thread_mode {
    SJ_MODE_NEW = 0,     /* nowhere: the thread has not run a probe */
    SJ_MODE_CHUNK = 1,   /* into a chunk of its slot */
    SJ_MODE_DISCARD = 2, /* into its discard window: no chunk was free */
    SJ_MODE_REFUSED = 3, /* nowhere: no thread slot was free, each record is counted by itself */
    SJ_MODE_OFF = 4,     /* into memory that nobody reads: the recorder is not armed */
    SJ_MODE_EXEMPT = 5   /* the same, for good: the thread is Sojourn's own */
} sj_thread_mode;

/* Timed calls of counted functions that a thread may have open at a time. */
enum { SJ_OPEN_SAMPLES = 8 };

/* What the probes of counted functions keep per thread. */
typedef struct sj_recorder_counting {
    uint64_t low;   /* end of the thread's own stack */
    uint64_t span;  /* of it; 0: no calls are counted */
    uint64_t reach; /* from here on short records may lie, SJ_SHORT_REACH_BYTES; a multiple
                     * of 8; 0: nowhere */
    const uint8_t *functions; /* of which calls are counted (arena.h); set unless span is 0 */
    uint32_t random;
    int32_t countdown; /* counted calls until one is timed */
    uint32_t open_samples;
    uint32_t unused;
    uint64_t samples[SJ_OPEN_SAMPLES]; /* stacks of those that are open and timed */
} sj_recorder_counting;

/* What dropping has done to the open calls of a thread's own stack, until the next notes. The
 * entries of calls that began among the dropped records and are open stay in the window. */
typedef struct sj_recorder_open_calls {
    uint32_t kept;         /* such records, at the start of the window, outermost first */
    bool is_unsure;        /* the window did not show all that was dropped */
    bool has_jumped;       /* the last of them is an exit by a tail call, not an entry */
    uint64_t unkept_stack; /* of the outermost open call whose entry was not kept; 0: none */
    uint64_t ended_stack;  /* calls at this address and below, of before, have ended; 0: none */
} sj_recorder_open_calls;

/* What the recorder keeps per thread. Zeroed is the right start. Only its thread touches it. */
typedef struct sj_recorder_thread {
    uint64_t cursor; /* address of the next record; what the probes add to */
    uint32_t busy;   /* 1 while the slow path runs: signal handlers only count and drop */
    uint32_t mode;   /* sj_thread_mode */
    sj_thread_slot *slot;
    sj_chunk_header *chunk;
    uint64_t window_low;      /* first record of the armed window */
    uint64_t parked;          /* the cursor while is_forking */
    uint64_t drop_calls;      /* dropped and not yet in a note */
    uint64_t drop_events;     /* likewise */
    uint64_t waited_ticks;    /* likewise */
    _Atomic uint64_t nested;  /* dropped by handlers: calls << 32 | events */
    uint64_t seen_recycled;   /* slots, when the thread found none */
    uint32_t wait_failed;     /* a wait timed out; no further one until a chunk is free */
    uint32_t refusal_counted; /* the thread is in threads_refused */
    uint32_t is_forking;      /* between sj_recorder_park and sj_recorder_unpark */
    uint64_t forked_in;       /* handler's frame that the fork lay in; 0: none */
    uint32_t forks;           /* that the thread has come out of as the child */
    bool has_own_stack;       /* the slot's bounds are of the thread's stack */
    sj_recorder_counting counting;
    uint64_t refused_ticks;       /* when the file system had no memory for it; 0: it had */
    bool has_window;              /* its discard window has memory */
    uint64_t slow_at;             /* frame of the slow path that runs; 0: none, or not known */
    uint64_t wait_at;             /* frame of the wait that runs; 0: none */
    uint32_t wait_counts;         /* sj_wait_count bits of the counters that it is in */
    _Alignas(16) sj_record trash; /* where a single dropped record is written */
    sj_recorder_open_calls open;  /* in spite of what was dropped since the last notes */
} sj_recorder_thread;

extern __thread sj_recorder_thread sj_recorder_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Of a reserved address, the bits that are all 0 where no record can be (arena.h). */
#define SJ_USABLE_MASK UINT32_C(0xf000)

/* Where probes find SJ_USABLE_MASK: in a page that the kernel wipes in a forked child, whose probes
 * then take the slow path instead of writing to its parent's arena. Since the start it lies at
 * SJ_FORK_PAGE_ADDRESS if that was free, which an instruction can name. */
extern _Atomic uint32_t *sj_recorder_usable_mask __attribute__((visibility("hidden")));
#define SJ_FORK_PAGE_ADDRESS UINT64_C(0x7fff0000)

/* sj_recorder_start creates the arena `directory/name` (mode 0600; it must not exist), maps it and
 * arms the recorder. Once per process: a forked child calls sj_recorder_after_fork before. One
 * thread at a time. SJ_EINVAL sizes out of range, SJ_EEXIST, SJ_EIO, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_recorder_start(const char *directory, const char *name,
                                          const sj_link_welcome *welcome);

/* sj_recorder_set_state publishes the arena's state; RECORDING after the plans were applied. */
void sj_recorder_set_state(sj_arena_state state);

/* sj_recorder_end marks the arena as ended by a normal exit, and the threads that had ended before:
 * their open calls ended by pthread_exit or cancellation. It notes the calling thread's name.
 * Called once, at exit. */
void sj_recorder_end(void);

/* sj_recorder_disarm stops recording for good: threads run on at full speed, their records are
 * discarded. The reason is stored in the arena unless the arena belongs to a parent. Any thread. */
void sj_recorder_disarm(sj_disarm_reason reason);

/* sj_recorder_counts_calls: probes may write short records. */
bool sj_recorder_counts_calls(void);

/* sj_recorder_retire ends a recording whose probes stay in use: the arena stays mapped, further
 * records are discarded. Any thread. */
void sj_recorder_retire(void);

/* sj_recorder_is_armed: records are kept. Any thread. */
bool sj_recorder_is_armed(void);

/* sj_recorder_may_call: the agent may make system calls. False once the consumer has found that a
 * seccomp filter may kill the process for one. Any thread. */
bool sj_recorder_may_call(void);

/* sj_recorder_begin_calls is sj_recorder_may_call for a caller that then makes calls, and, if true,
 * says by sj_recorder_end_calls that they are made. Any thread, also in handlers. */
bool sj_recorder_begin_calls(void);
void sj_recorder_end_calls(void);

/* sj_recorder_limit_space gives back address space of the arena before the process limits its own
 * to `limit_bytes`: what is more than an eighth of it and holds no slots that threads could claim
 * at once. Later threads may find no slot. Makes a system call. Async-signal-safe. */
void sj_recorder_limit_space(uint64_t limit_bytes);

/* sj_recorder_confine makes that no call is made from now on, before the program gives itself a
 * filter of system calls: returns when other threads have ended theirs, or after a second. */
void sj_recorder_confine(void);

/* sj_recorder_exempt makes the calling thread, which is Sojourn's own, one whose calls are neither
 * recorded nor counted. Before its first probe. */
void sj_recorder_exempt(void);

/* sj_recorder_park and sj_recorder_unpark bracket a fork in the forking thread, so that its next
 * probe, in the parent or in the child, takes the slow path. */
void sj_recorder_park(void);
void sj_recorder_unpark(void);

/* sj_recorder_after_fork makes a forked child stop recording into its parent's arena; a following
 * sj_recorder_start lets it record into its own. Called by the only thread of the child. It makes
 * no system call where the parent could make none, and then neither does the child. */
void sj_recorder_after_fork(void);

/* sj_recorder_unmap unmaps the arena. The recorder is not armed any more and no thread is in a
 * probe or will run one. */
void sj_recorder_unmap(void);

/* sj_recorder_mark stores a mark in the arena's table and a note in the thread's stream; nothing
 * when not armed. `name` is cut to SJ_ARENA_MARK_BYTES - 1 bytes. Async-signal-safe. */
void sj_recorder_mark(const char *name, bool end);

/* sj_recorder_request writes a request to the recorder process into the thread's stream; nothing
 * when not armed. Async-signal-safe. */
void sj_recorder_request(sj_request request);

/* sj_recorder_count_refused counts a function for whose values or rules there is no room. */
void sj_recorder_count_refused(void);

/* sj_recorder_count_lost_value counts a value that its call's probe did not find, whatever the
 * drain makes of the call. Async-signal-safe. */
void sj_recorder_count_lost_value(void);

/* sj_recorder_report_overwritten tells the recorder which hooks the program has overwritten; does
 * nothing without an arena of this process. Before sj_recorder_end, one thread. */
void sj_recorder_report_overwritten(const sj_overwritten *found);

/* sj_recorder_count_unrecorded counts a program that the process runs; nothing for those that join
 * the session. Also in a vforked child; async-signal-safe. */
void sj_recorder_count_unrecorded(sj_unrecorded reason);

/* sj_recorder_begin_exec notes that this process is about to execute a program: counts it by
 * `reason`, unless it joins the session (SJ_UNRECORDED_NONE). sj_recorder_cancel_exec takes that
 * back: the kernel has refused the program. Both make a system call; also in a vforked child;
 * async-signal-safe. */
void sj_recorder_begin_exec(sj_unrecorded reason);
void sj_recorder_cancel_exec(sj_unrecorded reason);

/* sj_recorder_count_thread notes what a live thread has used so far, if it records: its CPU time
 * and, unless NULL, what it allocated in the heap of a runtime. Any thread. */
void sj_recorder_count_thread(uint32_t tid, const uint64_t *allocated_bytes);

/* sj_recorder_cpu_ns returns the CPU time of the calling thread, and sj_recorder_count_cpu adds
 * what the agent has spent since to its account; nothing when no arena is there. */
uint64_t sj_recorder_cpu_ns(void);
void sj_recorder_count_cpu(uint64_t since_ns);

/* sj_recorder_slow gives a probe a record when its reservation failed, and returns its address:
 * in a chunk, or in memory that is counted as dropped. May wait (SJ_FULL_WAIT, at most wait_ms)
 * unless the thread runs a signal handler. `tag` is the record's tag. Async-signal-safe. */
uint64_t sj_recorder_slow(uint32_t tag);

/* sj_recorder_leave ends the slow path of this thread whose frames lie between two addresses of its
 * stack: a signal handler has made the thread go on elsewhere. Async-signal-safe. */
void sj_recorder_leave(uint64_t low, uint64_t high);

/* sj_recorder_slow_at_once does so without waiting. Async-signal-safe. */
uint64_t sj_recorder_slow_at_once(uint32_t tag);

#endif
