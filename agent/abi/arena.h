/* Arena: shared memory between one traced process (the producer) and its drain (the consumer).
 *
 * The arena is a sparse file `<runtime directory>/<pid>.<n>.arena` on tmpfs. The agent maps it
 * shared when it starts to record. The file outlives the process. So the recorder, the daemon, or a
 * later start of either recovers the records after a crash. Each thread that reaches a probe owns
 * one thread slot and up to 64 chunks.
 *
 * A chunk is 64 KiB, aligned to 64 KiB in the process. Its first 4 KiB hold the header and never
 * hold records: a probe that reserves a record slot there calls the slow path (one TEST
 * instruction on address bits). A probe reserves a record slot by one instruction (`xadd %reg,
 * %fs:cursor`, flags saved). So a signal handler that interrupts a probe gets other record slots,
 * and no record is overwritten.
 *
 * `free_chunks` of the thread slot passes the ownership of chunks, one bit per chunk:
 *   producer: claims a set bit (acquire; pairs with the consumer's release), fills in the
 *             header, and stores the chunk's sequence number (release).
 *   consumer: reads records until it finds a slot of zeros. When the producer has closed the
 *             chunk (`closed_records`, release) and all is read, it zeroes the chunk and sets
 *             its bit (release).
 *
 * The file is sparse, and its file system may be full. So the producer makes the kernel allocate
 * the pages before it writes to them. It does so for a chunk before it first claims the chunk. The
 * consumer touches no other pages.
 *
 * A record slot that is reserved but never written (a longjmp left the handler) keeps its chunk
 * until the thread ends.
 *
 * While a thread drops records, its cursor points into its discard window: the last
 * SJ_DISCARD_RECORDS records of an extra chunk. A record there with a nonzero tag is a dropped one
 * that the slot's dropped_* counters do not count yet. The producer counts and zeroes the window
 * each time it is full. The consumer does so once after the thread has ended.
 *
 * The layout is fixed per SJ_ARENA_VERSION. All integers are native-endian, because both processes
 * run on one machine. */
#ifndef SJ_AGENT_ABI_ARENA_H
#define SJ_AGENT_ABI_ARENA_H

#include "agent/abi/overwritten.h"
#include "proto/base/ids.h"

#include <stdatomic.h>
#include <stdint.h>

enum {
    SJ_ARENA_VERSION = 4,
    SJ_ARENA_DISTANCE_VERSION = 3, /* its short records hold distances (record.h) */
    SJ_ARENA_COUNTING_VERSION = 3, /* first version with sj_arena_counted_offset */
    SJ_ARENA_FIRST_VERSION = 1, /* without slots_begun: the agent prepares all slots at the start */
    SJ_CHUNK_BYTES = 64 * 1024,
    SJ_CHUNK_HEADER_BYTES = 4096,
    SJ_CHUNK_RECORDS = (SJ_CHUNK_BYTES - SJ_CHUNK_HEADER_BYTES) / 16,
    SJ_DISCARD_RECORDS = 256,
    SJ_DISCARD_OFFSET = SJ_CHUNK_BYTES - SJ_DISCARD_RECORDS * 16, /* in the discard chunk */
    SJ_ARENA_HEADER_BYTES = 64 * 1024,
    SJ_ARENA_MAX_THREADS = 1024,
    SJ_ARENA_MAX_CHUNKS = 64, /* per thread: the bits of free_chunks */
    SJ_ARENA_MARKS = 512,
    SJ_ARENA_MARK_BYTES = 64,
    /* kinds with a counter in `unrecorded`; later kinds have theirs in `unrecorded_later` */
    SJ_ARENA_UNRECORDED = 8
};

#define SJ_ARENA_MAGIC UINT64_C(0x414e4552414a53) /* "SJARENA" */

/* Defines what the agent does when a thread has no free chunk. */
typedef enum sj_full_policy {
    SJ_FULL_WAIT = 0, /* wait at most wait_ms, but never in a signal handler; then drop */
    SJ_FULL_DROP_NEW = 1
} sj_full_policy;

typedef enum sj_arena_state {
    SJ_ARENA_STARTING = 0,
    SJ_ARENA_RECORDING = 1,
    SJ_ARENA_DISARMED = 2, /* the agent stopped recording; see `disarm_reason` */
    SJ_ARENA_ENDED = 3     /* the process ended by exit, or its last tracer has detached */
} sj_arena_state;

typedef enum sj_disarm_reason {
    SJ_DISARM_NONE = 0,
    SJ_DISARM_NO_RECORDER = 1,
    SJ_DISARM_NO_MEMORY = 2,
    SJ_DISARM_BAD_PLAN = 3,
    SJ_DISARM_PROTECT_FAILED = 4,
    SJ_DISARM_FORKED_WITHOUT_HANDLER = 5,
    SJ_DISARM_REQUESTED = 6,
    /* the agent still records, but is_confined is set; reported by the consumer */
    SJ_DISARM_CONFINED = 7,
    SJ_DISARM_NO_ARENA = 8, /* the agent said HELLO but made no arena; reported by the consumer */
    SJ_DISARM_LEFT = 9, /* the process ran on when its recording ended; reported by the consumer */
    /* the process executed a program that is not recorded; reported by the consumer */
    SJ_DISARM_EXECUTED = 10,
    /* another version wrote the arena, or it is damaged; reported by the consumer */
    SJ_DISARM_UNREADABLE = 11
} sj_disarm_reason;

typedef enum sj_thread_state {
    SJ_THREAD_FREE = 0,
    SJ_THREAD_CLAIMED = 1, /* the owner is filling in the slot */
    SJ_THREAD_LIVE = 2,
    SJ_THREAD_ENDED = 3 /* the consumer sets it when the tid is gone, before it frees the slot */
} sj_thread_state;

/* Position up to which the consumer has read a thread's records. The consumer keeps it beside the
 * records, so that another consumer can continue after a kill. The producer never touches it. */
typedef struct sj_slot_cursor {
    uint64_t thread;   /* number of the thread in the session; 0: not read yet */
    uint64_t sequence; /* sequence number of the chunk to read next */
    /* Index of the record to read next. All records before it are in the spool or counted in
     * `unsent`. */
    uint64_t position;
    uint64_t unsent; /* events before `position` that are not in the spool, dropped ones included */
    uint64_t noted_calls; /* dropped calls that notes before `position` report */
    uint64_t noted_events;
} sj_slot_cursor;

/* Content of the cursor after the next block, gap or sums are stored. The consumer writes the offer
 * before it stores them. If the consumer is killed in between, the next consumer finds out whether
 * they were stored. If so, the offer is valid, else the cursor. */
typedef struct sj_slot_offer {
    /* Number of the block in its session, from 1. With SJ_OFFER_GAP, the number of the gap. With
     * SJ_OFFER_SUMS, the number of events in the profile's sums afterwards. With SJ_OFFER_FLIGHT,
     * the number of the block in the flight recorder. 0: no offer. */
    uint64_t number;
    uint64_t unsent; /* as in sj_slot_cursor */
    uint64_t unsent_calls;
} sj_slot_offer;

#define SJ_OFFER_GAP (UINT64_C(1) << 63)
#define SJ_OFFER_SUMS (UINT64_C(1) << 62)
#define SJ_OFFER_FLIGHT (UINT64_C(1) << 61)
#define SJ_OFFER_NUMBER (SJ_OFFER_FLIGHT - 1) /* mask of the number itself */

/* Indexes of a thread's memory counters in its slot. */
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
    /* Clock when the slot was claimed; 0: never claimed, so it has no chunks. The consumer stores
     * an earlier clock if calls were open at the attach. */
    uint64_t start_ticks;
    uint64_t stack_low; /* bounds of the thread's own stack; 0, 0: unknown */
    uint64_t stack_high;
    _Atomic uint64_t free_chunks;
    /* chunks claimed so far, which is the number of the next one */
    _Atomic uint64_t chunk_sequence;
    _Atomic uint64_t dropped_calls;  /* dropped entries, total */
    _Atomic uint64_t dropped_events; /* dropped records, total */
    _Atomic uint64_t waited_ticks;   /* time spent waiting for the drain, total */
    _Atomic uint64_t backed_chunks; /* bit per chunk: its pages have memory; zeroed with the slot */
    /* Thread name (comm) when the slot was claimed, or a later one that the consumer has read. */
    char name[16];
    sj_slot_cursor cursor;
    _Atomic uint32_t has_exited; /* set at the program's end: the thread had ended before */
    uint32_t unused_word;
    uint64_t unsent_calls; /* written by the consumer: calls known to be among `cursor.unsent` */
    /* 1 + the thread's CPU time, and 1 + its allocated bytes, when the thread, its process or its
     * runtime ended; 0: not known. */
    _Atomic uint64_t cpu_ns;
    _Atomic uint64_t allocated_bytes; /* in the heap of a runtime */
    /* 1 + the thread's counters of allocations and frees since counting began, indexed by
     * sj_slot_memory; 0: not counted. The thread itself writes them at each allocation and free. */
    _Atomic uint64_t memory[SJ_SLOT_MEMORY];
    /* The thread's name (comm) at the program's exit. Stored only for the thread that calls exit;
     * "": not known. */
    char last_name[16];
    sj_slot_offer offer; /* written by the consumer */
    uint8_t reserved[256 - 8 - 8 - 16 - 8 * 6 - 16 - sizeof(sj_slot_cursor) - 8 - 8 - 16 -
                     8 * SJ_SLOT_MEMORY - 16 - sizeof(sj_slot_offer)];
} sj_thread_slot;

_Static_assert(sizeof(sj_thread_slot) == 256, "thread slots are one page in sixteen");

typedef struct sj_chunk_header {
    _Atomic uint64_t sequence; /* 1 + number of the chunk in its thread; 0: free */
    /* records reserved when the chunk was closed; UINT32_MAX: open */
    _Atomic uint32_t closed_records;
    uint32_t thread_slot;
    uint64_t opened_ticks;
    uint8_t reserved[40];
} sj_chunk_header;

_Static_assert(sizeof(sj_chunk_header) == 64, "one cache line");

/* Refused events that gaps report. The consumer writes it, so that another consumer can continue
 * after a kill. */
typedef struct sj_refused_reports {
    uint64_t calls; /* reported so far */
    uint64_t events;
    uint64_t has_gap;     /* 1: a gap was sent, even if it has no events */
    uint64_t next_gap;    /* number of the gap that is being sent; 0: none */
    uint64_t calls_after; /* reported once that gap is sent */
    uint64_t events_after;
} sj_refused_reports;

/* Reason why a program that a process executes does not join the session. */
typedef enum sj_unrecorded {
    SJ_UNRECORDED_NONE = 0,
    SJ_UNRECORDED_UNKNOWN = 1,   /* its file cannot be read, or the agent did not start in it */
    SJ_UNRECORDED_KIND = 2,      /* static, or for another machine */
    SJ_UNRECORDED_SET_USER = 3,  /* set-user-id or set-group-id */
    SJ_UNRECORDED_SANITIZER = 4, /* AddressSanitizer's runtime must be loaded first */
    /* the agent or the recorder cannot be reached from its root directory */
    SJ_UNRECORDED_ROOT = 5,
    SJ_UNRECORDED_USER = 6,   /* it runs as another user, who may not reach the recorder */
    SJ_UNRECORDED_FILTER = 7, /* its system-call filter would kill it for a call of the agent */
    SJ_UNRECORDED_FORK = 8,   /* forked by a raw system call, without the agent's fork handlers */
    SJ_UNRECORDED_UNFOLLOWED = 9, /* children and programs are not followed (--children, attach) */
    /* executed by a raw system call of the program, unseen by the agent */
    SJ_UNRECORDED_UNSEEN = 10,
    SJ_UNRECORDED_ENVIRONMENT = 11, /* the environment has no space for the agent's variables */
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
    /* number of threads that sleep until a chunk is free: futex word */
    _Atomic uint32_t drain_waiters;
    sj_session_id session;
    uint64_t attach_ticks;
    uint64_t attach_realtime_ns;
    _Atomic uint64_t threads_refused; /* threads that found no slot */
    /* Events dropped by threads without a slot, or before they found one: all events, and the calls
     * among them. */
    _Atomic uint64_t events_refused;
    _Atomic uint64_t slow_path_reentries;
    _Atomic uint64_t mark_count; /* marks written to the table, total */
    uint64_t clock_hz; /* clock rate as the machine reports it (cntfrq_el0); 0: unknown (tsc) */
    /* Set by the consumer: the process has a seccomp filter, which may kill it for a system call of
     * the agent. From then on the agent makes none, and drops records where it would wait. */
    _Atomic uint32_t is_confined;
    /* threads that wait until the consumer frees the slot of an ended thread */
    _Atomic uint32_t slot_waiters;
    _Atomic uint32_t consumer; /* pid of the process that reads the arena; 0: none */
    /* Slots from this index on were never claimed, and no process touches their pages. Raised
     * before the slot below it is live. */
    _Atomic uint32_t slots_begun;
    _Atomic uint64_t calls_refused; /* calls among events_refused */
    /* searches for a slot: a rising number shows that the process runs */
    _Atomic uint64_t slot_requests;
    _Atomic uint64_t slots_recycled; /* slots freed by the consumer, total */
    /* Executed programs and forked processes that are not recorded, by sj_unrecorded. */
    _Atomic uint32_t unrecorded[SJ_ARENA_UNRECORDED];
    /* CPU time that the agent used to start, to follow modules and to end */
    _Atomic uint64_t agent_cpu_ns;
    /* Functions whose results are not recorded, or whose callees no rule recognises, because their
     * tables are full. */
    _Atomic uint64_t functions_refused;
    /* Number of output buffers that were not recorded, because their address was not known at the
     * function's exit. */
    _Atomic uint64_t values_lost;
    /* Number of requests for memory of the arena's file that the file system refused. */
    _Atomic uint64_t pages_refused;
    _Atomic uint32_t is_full;           /* 1: the latest of these requests was refused */
    _Atomic uint32_t forks_unannounced; /* children forked without the agent's fork handlers */
    sj_overwritten overwritten; /* found when the program ended; written before SJ_ARENA_ENDED */
    /* Counters of the kinds from SJ_ARENA_UNRECORDED on. */
    _Atomic uint32_t unrecorded_later[SJ_UNRECORDED_KINDS - SJ_ARENA_UNRECORDED];
    /* Programs that threads are about to execute in place of this process; 0: none. Low 16 bits:
     * number of those that will join the session. Higher bits: number of those that were counted as
     * unrecorded. Children of vfork do not count. */
    _Atomic uint32_t own_execs;
    uint64_t own_address;               /* address of this header in the process; 0: not known */
    sj_refused_reports refused_reports; /* about events_refused and calls_refused */
} sj_arena_header;

/* Amounts by which one program increases `own_execs`: a program that will join the session, and a
 * program that was counted as unrecorded. */
enum { SJ_ARENA_EXEC_JOINS = 1, SJ_ARENA_EXEC_COUNTED = 1 << 16 };

static inline uint32_t sj_arena_execs_that_join(uint32_t own_execs)
{
    return own_execs % SJ_ARENA_EXEC_COUNTED;
}

static inline uint32_t sj_arena_execs_counted(uint32_t own_execs)
{
    return own_execs / SJ_ARENA_EXEC_COUNTED;
}

/* Returns the counter of a kind; borrowed from the header. */
static inline _Atomic uint32_t *sj_arena_unrecorded(sj_arena_header *header, uint32_t kind)
{
    return kind < SJ_ARENA_UNRECORDED ? &header->unrecorded[kind]
                                      : &header->unrecorded_later[kind - SJ_ARENA_UNRECORDED];
}

/* A mark of the program (sojourn.h). The table is a ring. */
typedef struct sj_arena_mark {
    _Atomic uint64_t sequence; /* 1 + number of the mark, written last */
    uint64_t ticks;
    uint32_t tid;
    uint32_t end; /* 0: begin, 1: end */
    char name[SJ_ARENA_MARK_BYTES];
} sj_arena_mark;

/* Offsets in the file:
 *   0                         sj_arena_header (4 KiB)
 *   SJ_ARENA_MARKS_OFFSET     sj_arena_mark[SJ_ARENA_MARKS]
 *   SJ_ARENA_HEADER_BYTES     sj_thread_slot[max_threads]
 *   sj_arena_chunk_offset()   chunks, thread by thread; each thread's discard chunk follows its
 *                             last one (sparse: one page of it is used)
 *   sj_arena_counted_offset() one byte per function that short records can name, written by the
 *                             consumer; 1: its calls are counted, and only some are timed */
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

/* Returns the offset of a thread's discard window. */
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
