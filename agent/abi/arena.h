/* The arena: shared memory between one traced process (producer) and its drain (consumer).
 *
 * A sparse file `<runtime directory>/<pid>.<n>.arena` on tmpfs, mapped shared by the agent at
 * attach; it outlives the process, so that the recorder, the daemon or the next start of either
 * recovers what a crash left. Each thread that meets a probe owns one slot and up to 64 chunks.
 *
 * A chunk is 64 KiB, aligned to 64 KiB in the process. Its first 4 KiB hold the header and are
 * never recorded into: a probe that reserves a slot there calls the slow path (one `test` of the
 * address bits). Reservation is one instruction (`xadd %reg, %fs:cursor`, flags saved), so a
 * signal handler that interrupts a probe gets slots of its own, and nothing is overwritten.
 *
 * Ownership of a chunk passes through `free_chunks` of the thread slot, one bit per chunk:
 *   producer: takes a set bit (acquire; pairs with the consumer's release), fills the header,
 *             stores the chunk's sequence (release)
 *   consumer: reads records until a slot is 0; when the chunk is closed (`closed_records` set with
 *             release by the producer) and read, zeroes it and sets the bit (release).
 * The file is sparse, and its file system may be full: the producer has the kernel give pages their
 * memory before it writes to them, those of a chunk before it takes the chunk for the first time.
 * The consumer touches no other pages.
 *
 * A chunk with a slot that is reserved but never written (a handler left by longjmp) is not freed
 * while its thread lives.
 *
 * While a thread drops, its cursor points into its discard window: the last SJ_DISCARD_RECORDS
 * records of a further chunk of its own. A record there with a tag other than 0 has been dropped
 * and is not yet in the slot's dropped_* counters: the producer counts and zeroes the window each
 * time it is full, the consumer does so once when the thread has ended.
 *
 * The layout is fixed per SJ_ARENA_VERSION; all integers native-endian (same machine). */
#ifndef SJ_AGENT_ABI_ARENA_H
#define SJ_AGENT_ABI_ARENA_H

#include "agent/abi/overwritten.h"
#include "proto/base/ids.h"

#include <stdatomic.h>
#include <stdint.h>

enum {
    SJ_ARENA_VERSION = 4,
    SJ_ARENA_DISTANCE_VERSION = 3, /* its short records bear distances (record.h) */
    SJ_ARENA_COUNTING_VERSION = 3, /* from here on with sj_arena_counted_offset */
    SJ_ARENA_FIRST_VERSION = 1,    /* without slots_begun: all slots are prepared at the start */
    SJ_CHUNK_BYTES = 64 * 1024,
    SJ_CHUNK_HEADER_BYTES = 4096,
    SJ_CHUNK_RECORDS = (SJ_CHUNK_BYTES - SJ_CHUNK_HEADER_BYTES) / 16,
    SJ_DISCARD_RECORDS = 256,
    SJ_DISCARD_OFFSET = SJ_CHUNK_BYTES - SJ_DISCARD_RECORDS * 16, /* in the discard chunk */
    SJ_ARENA_HEADER_BYTES = 64 * 1024,
    SJ_ARENA_MAX_THREADS = 1024,
    SJ_ARENA_MAX_CHUNKS = 64, /* per thread: bits of free_chunks */
    SJ_ARENA_MARKS = 512,
    SJ_ARENA_MARK_BYTES = 64,
    SJ_ARENA_UNRECORDED = 8 /* kinds that have a counter in `unrecorded` */
};

#define SJ_ARENA_MAGIC UINT64_C(0x414e4552414a53) /* "SJARENA" */

/* What the agent does when a thread has no free chunk. */
typedef enum sj_full_policy {
    SJ_FULL_WAIT = 0, /* wait at most wait_ms, never in a signal handler; then drop */
    SJ_FULL_DROP_NEW = 1
} sj_full_policy;

typedef enum sj_arena_state {
    SJ_ARENA_STARTING = 0,
    SJ_ARENA_RECORDING = 1,
    SJ_ARENA_DISARMED = 2, /* the agent stopped recording; see `disarm_reason` */
    SJ_ARENA_ENDED = 3     /* the process ended in an orderly way (exit or last detach) */
} sj_arena_state;

typedef enum sj_disarm_reason {
    SJ_DISARM_NONE = 0,
    SJ_DISARM_NO_RECORDER = 1,
    SJ_DISARM_NO_MEMORY = 2,
    SJ_DISARM_BAD_PLAN = 3,
    SJ_DISARM_PROTECT_FAILED = 4,
    SJ_DISARM_FORKED_WITHOUT_HANDLER = 5,
    SJ_DISARM_REQUESTED = 6,
    SJ_DISARM_CONFINED =
        7, /* the agent still records, but is_confined is set; reported by the consumer */
    SJ_DISARM_NO_ARENA = 8, /* the agent said hello, and made no arena; reported by the consumer */
    SJ_DISARM_LEFT = 9,     /* it went on when its recording ended; reported by the consumer */
    SJ_DISARM_EXECUTED = 10 /* it executed a program that is not recorded; by the consumer */
} sj_disarm_reason;

typedef enum sj_thread_state {
    SJ_THREAD_FREE = 0,
    SJ_THREAD_CLAIMED = 1, /* being filled by its owner */
    SJ_THREAD_LIVE = 2,
    SJ_THREAD_ENDED = 3 /* set by the consumer when the tid is gone, before it frees the slot */
} sj_thread_state;

/* How far the consumer has read a thread: its own data, kept beside the records so that another
 * consumer can continue after it was killed. The producer never touches it. */
typedef struct sj_slot_cursor {
    uint64_t thread;      /* number in the session; 0: never looked at */
    uint64_t sequence;    /* of the chunk to be read next, */
    uint64_t position;    /* from this record on; all before it are in the spool, or */
    uint64_t unsent;      /* counted here: events before it, dropped ones included, that are not */
    uint64_t noted_calls; /* drops reported by notes before it */
    uint64_t noted_events;
} sj_slot_cursor;

/* The cursor's content once a block is in the spool. It is written before the block is, so that
 * another consumer knows which of the two holds after a kill between them. */
typedef struct sj_slot_block {
    uint64_t number; /* the block's number in its session, from 1; 0: none is on its way */
    uint64_t unsent; /* as sj_slot_cursor.unsent, */
    uint64_t unsent_calls;
} sj_slot_block;

/* Places of a thread's counters of memory in its slot. */
typedef enum sj_slot_memory {
    SJ_SLOT_ALLOCATIONS = 0,
    SJ_SLOT_ALLOCATED_BYTES = 1,
    SJ_SLOT_FREES = 2,
    SJ_SLOT_FREED_BYTES = 3,
    SJ_SLOT_MEMORY = 4
} sj_slot_memory;

typedef struct sj_thread_slot {
    _Atomic uint32_t state; /* sj_thread_state */
    uint32_t tid;
    uint64_t start_ticks; /* clock when the slot was claimed; 0: it never was, and has no chunks */
    uint64_t stack_low;   /* bounds of the thread's own stack; 0,0 when unknown */
    uint64_t stack_high;
    _Atomic uint64_t free_chunks;
    _Atomic uint64_t chunk_sequence; /* chunks taken so far; the next gets this number */
    _Atomic uint64_t dropped_calls;  /* entries dropped, total */
    _Atomic uint64_t dropped_events; /* records dropped, total */
    _Atomic uint64_t waited_ticks;   /* time spent waiting for the drain, total */
    _Atomic uint64_t backed_chunks;  /* whose pages have memory; zeroed with the slot */
    char name[16];                   /* comm at registration */
    sj_slot_cursor cursor;
    _Atomic uint32_t has_exited; /* set at the program's end: the thread had ended before */
    uint32_t unused_word;
    uint64_t unsent_calls; /* of the consumer: calls that are known to be among `cursor.unsent` */
    /* What the thread had used when it, its process or its runtime ended, and one more; 0: that is
     * not known. */
    _Atomic uint64_t cpu_ns;
    _Atomic uint64_t allocated_bytes; /* in the heap of a runtime */
    /* What the thread has allocated and freed since the counting began, by sj_slot_memory, and one
     * more; 0: nobody counts. Written by the thread itself, each time. */
    _Atomic uint64_t memory[SJ_SLOT_MEMORY];
    /* comm at the end of recording, of the thread that ended it by exit; "": not known. */
    char last_name[16];
    sj_slot_block block; /* the consumer writes it */
    uint8_t reserved[256 - 8 - 8 - 16 - 8 * 6 - 16 - sizeof(sj_slot_cursor) - 8 - 8 - 16 -
                     8 * SJ_SLOT_MEMORY - 16 - sizeof(sj_slot_block)];
} sj_thread_slot;

_Static_assert(sizeof(sj_thread_slot) == 256, "thread slots are one page in sixteen");

typedef struct sj_chunk_header {
    _Atomic uint64_t sequence;       /* 1 + number of the chunk in its thread; 0 while free */
    _Atomic uint32_t closed_records; /* records reserved when closed; UINT32_MAX while open */
    uint32_t thread_slot;
    uint64_t opened_ticks;
    uint8_t reserved[40];
} sj_chunk_header;

_Static_assert(sizeof(sj_chunk_header) == 64, "one cache line");

/* Why a program that a process runs does not join the session. */
typedef enum sj_unrecorded {
    SJ_UNRECORDED_NONE = 0,
    SJ_UNRECORDED_UNKNOWN = 1,    /* its file cannot be read, or the agent did not start in it */
    SJ_UNRECORDED_KIND = 2,       /* static, or for another machine */
    SJ_UNRECORDED_SET_USER = 3,   /* set-user-id or set-group-id */
    SJ_UNRECORDED_SANITIZER = 4,  /* AddressSanitizer's runtime has to come first */
    SJ_UNRECORDED_ROOT = 5,       /* the agent or the recorder is not in its root directory */
    SJ_UNRECORDED_USER = 6,       /* of another user, who may not reach the recorder */
    SJ_UNRECORDED_FILTER = 7,     /* a filter of system calls would end the agent's */
    SJ_UNRECORDED_FORK = 8,       /* forked by a system call, past the agent's handlers */
    SJ_UNRECORDED_UNFOLLOWED = 9, /* children and programs are not followed (--children, attach) */
    SJ_UNRECORDED_UNSEEN = 10,    /* run past the agent, by a system call of the program's own */
    SJ_UNRECORDED_ENVIRONMENT = 11, /* the environment is too large for the agent's entries */
    SJ_UNRECORDED_KINDS = 12
} sj_unrecorded;

typedef struct sj_arena_header {
    uint64_t magic; /* SJ_ARENA_MAGIC, written last by the agent */
    uint32_t version;
    uint32_t chunks_per_thread;
    uint32_t max_threads;
    uint32_t pid;
    uint32_t parent_pid;
    uint32_t full_policy; /* sj_full_policy */
    uint32_t wait_ms;
    _Atomic uint32_t state;         /* sj_arena_state */
    _Atomic uint32_t disarm_reason; /* sj_disarm_reason */
    _Atomic uint32_t drain_waiters; /* threads asleep for a chunk: futex word */
    sj_session_id session;
    uint64_t attach_ticks;
    uint64_t attach_realtime_ns;
    _Atomic uint64_t threads_refused; /* threads that found no slot */
    _Atomic uint64_t events_refused;  /* dropped by them, or before they found one: all, */
    _Atomic uint64_t slow_path_reentries;
    _Atomic uint64_t mark_count; /* marks written to the table, total */
    uint64_t clock_hz; /* of the ticks, as the machine reports it (cntfrq_el0); 0: unknown (tsc) */
    /* Set by the consumer: the process has a seccomp filter, which may kill it for a system call of
     * the agent's. The agent makes none from then on: it drops where it would wait. */
    _Atomic uint32_t is_confined;
    _Atomic uint32_t slot_waiters; /* threads that wait for a slot of one that has ended */
    _Atomic uint32_t consumer;     /* process that reads the arena; 0: none has opened it */
    /* No slot from this one on was ever claimed, and nobody touches the pages of those. Raised
     * before the slot below it is live. */
    _Atomic uint32_t slots_begun;
    _Atomic uint64_t calls_refused;  /* and the calls among events_refused */
    _Atomic uint64_t slot_requests;  /* looks for a slot: each shows that the process runs */
    _Atomic uint64_t slots_recycled; /* by the consumer, total */
    _Atomic uint32_t
        unrecorded[SJ_ARENA_UNRECORDED]; /* programs run, processes forked, by sj_unrecorded */
    _Atomic uint64_t agent_cpu_ns; /* CPU time of the agent in starting, following and ending */
    _Atomic uint64_t functions_refused; /* whose results are not recorded, or whose calls of others
                                           no rule recognises: there was no room for them */
    _Atomic uint64_t values_lost; /* buffers that functions have filled, of which nobody knew at
                                     the exit any more, or yet, where they are */
    _Atomic uint64_t
        pages_refused;        /* requests for memory of the file that its file system refused */
    _Atomic uint32_t is_full; /* the last one was refused */
    _Atomic uint32_t forks_unannounced; /* children that were forked past the agent's handlers */
    sj_overwritten overwritten; /* found when the program ended; written before SJ_ARENA_ENDED */
    _Atomic uint32_t
        unrecorded_later[SJ_UNRECORDED_KINDS - SJ_ARENA_UNRECORDED]; /* kinds that came later */
    /* Programs that threads are about to execute in the process's own place, by
     * SJ_ARENA_EXEC_JOINS and SJ_ARENA_EXEC_COUNTED; 0: none. Children of vfork do not set it. */
    _Atomic uint32_t own_execs;
    uint64_t own_address; /* of this header in the process; 0: not known */
} sj_arena_header;

/* What each of them adds to `own_execs`: one that is to join the session, or one that was counted
 * as unrecorded. */
enum { SJ_ARENA_EXEC_JOINS = 1, SJ_ARENA_EXEC_COUNTED = 1 << 16 };

static inline uint32_t sj_arena_execs_that_join(uint32_t own_execs)
{
    return own_execs % SJ_ARENA_EXEC_COUNTED;
}

static inline uint32_t sj_arena_execs_counted(uint32_t own_execs)
{
    return own_execs / SJ_ARENA_EXEC_COUNTED;
}

/* sj_arena_unrecorded returns the counter of an sj_unrecorded, which is borrowed from the header.
 */
static inline _Atomic uint32_t *sj_arena_unrecorded(sj_arena_header *header, uint32_t kind)
{
    return kind < SJ_ARENA_UNRECORDED ? &header->unrecorded[kind]
                                      : &header->unrecorded_later[kind - SJ_ARENA_UNRECORDED];
}

/* A mark of the app (sojourn.h): slots are used round robin. */
typedef struct sj_arena_mark {
    _Atomic uint64_t sequence; /* 1 + number of the mark, written last */
    uint64_t ticks;
    uint32_t tid;
    uint32_t end; /* 0 begin, 1 end */
    char name[SJ_ARENA_MARK_BYTES];
} sj_arena_mark;

/* Offsets in the file:
 *   0                        sj_arena_header (4 KiB)
 *   SJ_ARENA_MARKS_OFFSET    sj_arena_mark[SJ_ARENA_MARKS]
 *   SJ_ARENA_HEADER_BYTES    sj_thread_slot[max_threads]
 *   sj_arena_chunk_offset()  chunks, thread by thread; after the last
 *                            of each thread its discard chunk (sparse: one page is ever used)
 *   sj_arena_counted_offset() a byte for each function whose calls short records can name, set by
 *                            the consumer: 1, its calls are counted, and only some are timed */
enum { SJ_ARENA_MARKS_OFFSET = 4096 };

_Static_assert(sizeof(sj_arena_header) <= SJ_ARENA_MARKS_OFFSET, "header page");
_Static_assert(SJ_ARENA_MARKS_OFFSET + SJ_ARENA_MARKS * sizeof(sj_arena_mark) <=
                   SJ_ARENA_HEADER_BYTES,
               "marks fit the header area");

static inline uint64_t sj_arena_chunks_start(uint32_t max_threads)
{
    const uint64_t end = SJ_ARENA_HEADER_BYTES + (uint64_t)max_threads * sizeof(sj_thread_slot);
    return (end + SJ_CHUNK_BYTES - 1) / SJ_CHUNK_BYTES * SJ_CHUNK_BYTES;
}

static inline uint64_t sj_arena_chunk_offset(uint32_t max_threads, uint32_t chunks_per_thread,
                                             uint32_t thread, uint32_t chunk)
{
    const uint64_t number = (uint64_t)thread * (chunks_per_thread + 1) + chunk;
    return sj_arena_chunks_start(max_threads) + number * SJ_CHUNK_BYTES;
}

/* sj_arena_discard_offset returns where a thread's discard window lies. */
static inline uint64_t sj_arena_discard_offset(uint32_t max_threads, uint32_t chunks_per_thread,
                                               uint32_t thread)
{
    return sj_arena_chunk_offset(max_threads, chunks_per_thread, thread, chunks_per_thread) +
           SJ_DISCARD_OFFSET;
}

static inline uint64_t sj_arena_counted_offset(uint32_t max_threads, uint32_t chunks_per_thread)
{
    return sj_arena_chunk_offset(max_threads, chunks_per_thread, max_threads, 0);
}

static inline uint64_t sj_arena_bytes(uint32_t max_threads, uint32_t chunks_per_thread)
{
    return sj_arena_counted_offset(max_threads, chunks_per_thread) + SJ_CHUNK_BYTES;
}

#endif
