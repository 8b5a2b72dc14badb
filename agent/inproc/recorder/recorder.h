/* The recorder owns the arena and gives each thread memory for its records.
 *
 * The probes that hooks/ emits reserve a record by adding 16 to the calling thread's cursor. If
 * the reserved address lies in the first 4 KiB of a 64 KiB chunk, they call sj_recorder_slow. The
 * recorder uses no libc, errno or locks. It is built with -mgeneral-regs-only, so it uses no vector
 * registers. After sj_recorder_start it allocates no memory. */
#ifndef SJ_AGENT_INPROC_RECORDER_RECORDER_H
#define SJ_AGENT_INPROC_RECORDER_RECORDER_H

#include "agent/abi/alternate_stack.h"
#include "agent/abi/arena.h"
#include "agent/abi/link.h"
#include "agent/abi/record.h"
#include "proto/base/status.h"

#include <stdbool.h>

/* Where a thread's cursor points. */
typedef enum sj_thread_mode {
    SJ_MODE_NEW = 0,     /* nowhere: the thread has not run a probe */
    SJ_MODE_CHUNK = 1,   /* into a chunk of the thread's slot */
    SJ_MODE_DISCARD = 2, /* into its discard window, because no chunk was free */
    /* nowhere: all thread slots were in use; each record is counted separately */
    SJ_MODE_REFUSED = 3,
    SJ_MODE_OFF = 4,   /* into a trash area: the recorder is not armed */
    SJ_MODE_EXEMPT = 5 /* into a trash area, for good: the thread is Sojourn's own */
} sj_thread_mode;

/* Timed calls of counted functions that a thread may have open at the same time. */
enum { SJ_OPEN_SAMPLES = 8 };

/* State of the probes of counted functions, per thread. */
typedef struct sj_recorder_counting {
    uint64_t low;  /* low end of the thread's own stack */
    uint64_t span; /* size of that stack in bytes; 0: the thread counts no calls */
    /* start of the SJ_SHORT_REACH_BYTES of stack in which short records may lie; a multiple of 8;
     * 0: none may be written */
    uint64_t reach;
    /* bitmap of the functions whose calls are counted (arena.h); set unless span is 0 */
    const uint8_t *functions;
    uint32_t random;
    int32_t countdown; /* number of counted calls until one is timed */
    uint32_t open_samples;
    uint32_t unused;
    uint64_t samples[SJ_OPEN_SAMPLES]; /* stack addresses of the open timed calls */
} sj_recorder_counting;

/* The effect of dropping on the open calls of a thread's own stack since the last notes. The window
 * keeps the entries of calls that began among the dropped records and are still open. */
typedef struct sj_recorder_open_calls {
    uint32_t kept;   /* number of kept records at the start of the window, outermost call first */
    bool is_unsure;  /* the window did not show all dropped records */
    bool has_jumped; /* the last kept record is an exit by a tail call, not an entry */
    /* stack address of the outermost open call whose entry was not kept; 0: none */
    uint64_t unkept_stack;
    /* calls that began before the window, at this or a lower stack address, have ended; 0: none */
    uint64_t ended_stack;
} sj_recorder_open_calls;

/* The recorder's state of one thread; zeroed initially. Only its thread accesses it. */
typedef struct sj_recorder_thread {
    uint64_t cursor; /* address of the next record; probes add to it */
    /* 1 while the slow path runs: probes of signal handlers then only count and drop */
    uint32_t busy;
    uint32_t mode; /* sj_thread_mode */
    sj_thread_slot *slot;
    sj_chunk_header *chunk;
    uint64_t window_low;     /* first record of the armed window */
    uint64_t parked;         /* cursor while is_forking */
    uint64_t drop_calls;     /* calls dropped, not yet in a note */
    uint64_t drop_events;    /* events dropped, not yet in a note */
    uint64_t waited_ticks;   /* ticks waited, not yet in a note */
    _Atomic uint64_t nested; /* dropped in signal handlers: calls << 32 | events */
    uint64_t seen_recycled;  /* the arena's slots_recycled when the thread last found no slot */
    uint32_t wait_failed; /* a wait timed out; the thread waits again only after a chunk was free */
    uint32_t refusal_counted; /* 1 if threads_refused counts the thread */
    uint32_t is_forking;      /* 1 between sj_recorder_park and sj_recorder_unpark */
    uint64_t forked_in;       /* frame of the signal handler that called fork; 0: none */
    uint32_t forks;           /* number of forks from which the thread has returned as the child */
    bool has_own_stack;       /* the slot holds the bounds of the thread's own stack */
    sj_recorder_counting counting;
    uint64_t refused_ticks; /* when the file system last refused memory; 0: it did not */
    bool has_window;        /* the thread's discard window has memory */
    uint64_t slow_at;       /* frame of the running slow path; 0: none, or not known */
    uint64_t wait_at;       /* frame of the running wait; 0: none */
    uint32_t wait_counts;   /* counters that include the thread, as sj_wait_count bits (wait.c) */
    _Alignas(16) sj_record trash; /* receives a single dropped record */
    /* calls that are open in spite of the records dropped since the last notes */
    sj_recorder_open_calls open;
    /* bounds of the alternate stack of the last signal handler that ran on one; 0, 0: none */
    uint64_t alternate_low;
    uint64_t alternate_high;
    bool alternate_is_noted; /* the thread's chunks have the notes about that handler */
    sj_alternate_stack dropped_alternate; /* as the records in the discard window say */
    /* the innermost slow path that has not ended. Only valid while `busy` or `wait_at` is set,
     * because a handler may have left the slow path by longjmp. */
    struct sj_slow_path *slow_path;
    /* in the child of a handler that forked: the innermost slow path that the parent's handlers
     * have interrupted; NULL: none */
    struct sj_slow_path *left_path;
} sj_recorder_thread;

extern __thread sj_recorder_thread sj_recorder_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Bits of a reserved address that are all 0 where a record cannot be (arena.h). */
#define SJ_USABLE_MASK UINT32_C(0xf000)

/* Address of the SJ_USABLE_MASK that probes use. sj_recorder_start places it in a page that the
 * kernel zeroes in a forked child. The child's probes then take the slow path instead of writing to
 * the parent's arena. The page lies at SJ_FORK_PAGE_ADDRESS if that was free: an instruction can
 * encode that address. */
extern _Atomic uint32_t *sj_recorder_usable_mask __attribute__((visibility("hidden")));
#define SJ_FORK_PAGE_ADDRESS UINT64_C(0x7fff0000)

/* Creates the arena `directory/name` (mode 0600), maps it and arms the recorder. `directory` is
 * borrowed and must stay valid. One thread at a time. At most once per process: a forked child
 * calls sj_recorder_after_fork first.
 *
 * Returns SJ_EINVAL if sizes are out of range. Returns SJ_EEXIST if the file exists. Returns
 * SJ_ELIMIT if the file would exceed RLIMIT_FSIZE. Returns SJ_EUNSUPPORTED if the kernel does not
 * have MADV_WIPEONFORK. Also returns SJ_EIO or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_recorder_start(const char *directory, const char *name,
                                          const sj_link_welcome *welcome);

/* Publishes the arena's state. SJ_ARENA_RECORDING is published after the plans were applied. */
void sj_recorder_set_state(sj_arena_state state);

/* Marks the arena as ended by a normal exit and notes the calling thread's name. Also marks the
 * threads that had ended before: pthread_exit or cancellation ended their open calls. Called once,
 * at exit. */
void sj_recorder_end(void);

/* Stops recording for good. Threads continue at full speed and their records are discarded. Stores
 * the reason in the arena, unless the arena belongs to a parent process. Any thread. */
void sj_recorder_disarm(sj_disarm_reason reason);

/* True if the recording counts calls, so that probes may write short records. */
bool sj_recorder_counts_calls(void);

/* Ends a recording whose probes stay in use. The arena stays mapped; further records are discarded.
 * Any thread. */
void sj_recorder_retire(void);

/* True if records are kept. Any thread. */
bool sj_recorder_is_armed(void);

/* True if the agent may make system calls. False once the consumer or sj_recorder_confine has found
 * that a seccomp filter may kill the process for a system call. Any thread. */
bool sj_recorder_may_call(void);

/* Returns the same as sj_recorder_may_call, before a caller makes system calls. If the result is
 * true, the caller must call sj_recorder_end_calls after these system calls. Any thread;
 * async-signal-safe. */
bool sj_recorder_begin_calls(void);
void sj_recorder_end_calls(void);

/* Unmaps part of the arena before the process limits its address space to `limit_bytes`. The arena
 * then takes at most an eighth of the limit, but keeps all slots whose pages have memory. Later
 * threads may find no slot. Makes a system call. Async-signal-safe. */
void sj_recorder_limit_space(uint64_t limit_bytes);

/* Forbids system calls by the agent from now on, because the program is about to install a seccomp
 * filter. Waits, at most 1 s, until other threads have called sj_recorder_end_calls. */
void sj_recorder_confine(void);

/* Excludes the calling thread, which is Sojourn's own: its calls are neither recorded nor counted.
 * Called before the thread's first probe. */
void sj_recorder_exempt(void);

/* sj_recorder_park and sj_recorder_unpark enclose a fork in the forking thread. The thread's next
 * probe, in the parent or in the child, then takes the slow path. */
void sj_recorder_park(void);
void sj_recorder_unpark(void);

/* Stops a forked child from recording into its parent's arena. A later sj_recorder_start lets the
 * child record into an arena of its own. If a signal handler has forked, the interrupted code may
 * still access the parent's arena. So private memory takes the place of the arena. Called by the
 * only thread of the child. If the parent was confined, this function makes no system call, and the
 * child is confined, too. */
void sj_recorder_after_fork(void);

/* Disarms the recorder and unmaps the arena. No thread may be in a probe or run one later. */
void sj_recorder_unmap(void);

/* Stores a mark in the arena's table and a note in the thread's stream. Does nothing if the
 * recorder is not armed. If the table has no memory, counts the mark as refused. Cuts `name` to
 * SJ_ARENA_MARK_BYTES - 1 bytes. Async-signal-safe. */
void sj_recorder_mark(const char *name, bool end);

/* Writes a request to the recorder process into the thread's stream. Does nothing if the recorder
 * is not armed. Async-signal-safe. */
void sj_recorder_request(sj_request request);

/* Counts a function whose values or rules exceed the capacity of the recorder's tables. */
void sj_recorder_count_refused(void);

/* Counts a value that the probe of its call did not find. The count does not depend on whether the
 * drain keeps the call. Async-signal-safe. */
void sj_recorder_count_lost_value(void);

/* Reports to the recorder process which hooks the program has overwritten. Does nothing if the
 * recorder is not armed, or if this process has no arena of its own. Called before sj_recorder_end,
 * by one thread. */
void sj_recorder_report_overwritten(const sj_overwritten *found);

/* Counts a program that the process executes. Does nothing for SJ_UNRECORDED_NONE: the program
 * joins the session. May be called in a vfork child. Async-signal-safe. */
void sj_recorder_count_unrecorded(sj_unrecorded reason);

/* Notes that this process is about to execute a program. Counts the program by `reason`, unless it
 * joins the session (SJ_UNRECORDED_NONE). sj_recorder_cancel_exec undoes this after the kernel has
 * refused the program. Both make a system call, may be called in a vfork child, and are
 * async-signal-safe. */
void sj_recorder_begin_exec(sj_unrecorded reason);
void sj_recorder_cancel_exec(sj_unrecorded reason);

/* Stores the CPU time that a live thread has used so far, if the thread has a slot. If
 * `allocated_bytes` is not NULL, also stores how many bytes the thread has allocated in the heap of
 * a runtime. Any thread. */
void sj_recorder_count_thread(uint32_t tid, const uint64_t *allocated_bytes);

/* sj_recorder_cpu_ns returns the CPU time of the calling thread. sj_recorder_count_cpu adds the CPU
 * time since `since_ns` to the agent's total, and does nothing without an arena. */
uint64_t sj_recorder_cpu_ns(void);
void sj_recorder_count_cpu(uint64_t since_ns);

/* Returns the address of a record for a probe whose reservation failed. The record lies in a chunk,
 * or in memory whose records are counted as dropped. `tag` is the record's tag.
 *
 * May wait (SJ_FULL_WAIT, at most wait_ms), unless the thread runs a signal handler.
 * Async-signal-safe. */
uint64_t sj_recorder_slow(uint32_t tag);

/* Ends the calling thread's slow path or wait if its frame lies from `low` up to `high`. Called
 * when a signal handler has made the thread continue elsewhere. Async-signal-safe. */
void sj_recorder_leave(uint64_t low, uint64_t high);

/* True if a signal handler has interrupted the thread's slow path and forked, and this process is
 * the child. The slow path's frame must lie from `low` up to `high`. The slow path works on the
 * parent's state. So the thread must call sj_recorder_restart instead of continuing.
 * Async-signal-safe. */
bool sj_recorder_must_restart(uint64_t low, uint64_t high);

/* Leaves the interrupted slow path and runs it from its beginning, in the child's own state. Does
 * not return. Call it on the stack of the interrupted code, below that code's frames. */
_Noreturn void sj_recorder_restart(void);

/* Reports a signal handler of the calling thread that runs on the alternate stack from `low` up to
 * `high`. Call sj_recorder_begin_handler when it begins and sj_recorder_end_handler when it
 * returns. If that stack lies inside the thread's own stack, a note precedes the handler's records.
 * Does not block; makes no system call. Async-signal-safe. */
void sj_recorder_begin_handler(uint64_t low, uint64_t high);
void sj_recorder_end_handler(void);

/* Does the same as sj_recorder_slow, but never waits. Async-signal-safe. */
uint64_t sj_recorder_slow_at_once(uint32_t tag);

#endif
