/* The zombie region: shared memory between the monitor of freed memory in one process and its
 * recorder. The recorder makes the file `<pid>.<n>.zombies` beside the arena, with its whole size
 * allocated, before it answers HELLO; the monitor maps it, reads the settings and writes reports.
 *
 * A report's room passes from one side to the other through `state`:
 *   monitor:  FREE -> WRITING (compare and exchange) -> FULL (release)
 *   recorder: FULL (acquire) -> FREE (release)
 * A room that a killed process left in WRITING is never read. The recorder trusts no number that it
 * finds here. All integers native-endian (same machine). */
#ifndef SJ_AGENT_ABI_ZOMBIES_H
#define SJ_AGENT_ABI_ZOMBIES_H

#include <stdatomic.h>
#include <stdint.h>

#define SJ_ZOMBIES_MAGIC UINT64_C(0x534549424d4f5a53) /* "SZOMBIES" */

enum {
    SJ_ZOMBIES_VERSION = 2,
    SJ_ZOMBIE_REPORTS = 64,
    SJ_ZOMBIE_MODULES = 512,
    SJ_ZOMBIE_PATH_BYTES = 240,
    SJ_ZOMBIE_REGISTERS = 17, /* by DWARF number, x86-64; the last is the program counter */
    SJ_ZOMBIE_STACK_BYTES = 4096,
    SJ_ZOMBIE_USE_STACK_BYTES = 8192,
    SJ_ZOMBIE_NAME_BYTES = 16
};

/* The functions whose entries are patched; names in agent/zombies/heads.c, in this order: what
 * gives blocks out, then, from SJ_HEAD_FREE on, what takes them back or is given one. What lies
 * between calloc and free, or behind sigaction, may be missing. */
typedef enum sj_zombie_head {
    SJ_HEAD_MALLOC = 0,
    SJ_HEAD_CALLOC,
    SJ_HEAD_ALIGNED_ALLOC,
    SJ_HEAD_MEMALIGN,
    SJ_HEAD_POSIX_MEMALIGN,
    SJ_HEAD_VALLOC,
    SJ_HEAD_PVALLOC,
    SJ_HEAD_FREE,
    SJ_HEAD_REALLOC,
    SJ_HEAD_USABLE_SIZE,
    SJ_HEAD_SIGACTION,
    SJ_HEAD_SIGMASK,
    SJ_HEAD_READ, /* from here on, system calls whose second argument is a buffer */
    SJ_HEAD_WRITE,
    SJ_HEAD_PREAD,
    SJ_HEAD_PWRITE,
    SJ_HEAD_RECV,
    SJ_HEAD_SEND,
    SJ_HEAD_RECVFROM,
    SJ_HEAD_SENDTO,
    SJ_HEADS
} sj_zombie_head;

/* The entries have a plan for each half, because the second stays longer than the first. */
typedef enum sj_zombie_half {
    SJ_HEAP_TAKERS = 0,
    SJ_HEAP_GIVERS = 1,
    SJ_HEAP_HALVES
} sj_zombie_half;

typedef enum sj_zombie_kind {
    SJ_ZOMBIE_USE_AFTER_FREE = 1,
    SJ_ZOMBIE_OVERFLOW = 2,
    SJ_ZOMBIE_UNDERFLOW = 3,
    SJ_ZOMBIE_DOUBLE_FREE = 4,
    SJ_ZOMBIE_INVALID_FREE = 5,
    SJ_ZOMBIE_OVERFLOW_AT_FREE = 6,  /* bytes behind the block had changed when it was freed */
    SJ_ZOMBIE_UNDERFLOW_AT_FREE = 7, /* likewise in front of it */
    SJ_ZOMBIE_REALLOC_AFTER_FREE = 8,
    SJ_ZOMBIE_WILD_ACCESS = 9 /* of a guard page that belongs to no block */
} sj_zombie_kind;

typedef enum sj_zombie_on_use {
    SJ_ZOMBIE_GO_ON = 0,
    SJ_ZOMBIE_STOP = 1 /* the program ends by the signal of its fault, or SIGABRT */
} sj_zombie_on_use;

/* Why a process is not monitored. */
typedef enum sj_zombie_refusal {
    SJ_ZOMBIE_MONITORED = 0,
    SJ_ZOMBIE_NO_PLAN = 1,      /* the entries cannot all be patched */
    SJ_ZOMBIE_OTHER_MALLOC = 2, /* malloc is not the C library's: sanitizer, valgrind, ... */
    SJ_ZOMBIE_NO_MEMORY = 3,    /* no room for the pool */
    SJ_ZOMBIE_CODE_DIFFERS = 4, /* the entries in memory are not those of the file */
    SJ_ZOMBIE_MACHINE = 5,      /* not supported on this processor */
    SJ_ZOMBIE_NO_HANDLER = 6,   /* SIGSEGV cannot be handled */
    SJ_ZOMBIE_OTHER_AGENT = 7,  /* another version's agent has left blocks */
    SJ_ZOMBIE_NOT_STARTED = 255 /* the monitor has not said anything */
} sj_zombie_refusal;

typedef struct sj_zombie_settings {
    uint32_t one_in;      /* one allocation in so many gets a guarded block, on average; 1: all */
    uint32_t slots;       /* blocks that are watched at once, freed ones included */
    uint32_t stack_bytes; /* kept of each allocation's and free's stack */
    uint32_t on_use;      /* sj_zombie_on_use */
    uint32_t reports_per_minute;
    uint32_t memory_kib; /* of the blocks' pages, freed ones included that keep their content */
} sj_zombie_settings;

/* A moment of a thread: enough of its state to unwind the stack elsewhere. */
typedef struct sj_zombie_trace {
    uint64_t ticks; /* 0: this did not happen */
    uint32_t tid;
    uint32_t stack_bytes; /* valid bytes of the stack, from the stack pointer on */
    uint64_t registers[SJ_ZOMBIE_REGISTERS];
} sj_zombie_trace;

typedef enum sj_zombie_report_state {
    SJ_ZOMBIE_REPORT_FREE = 0,
    SJ_ZOMBIE_REPORT_WRITING = 1,
    SJ_ZOMBIE_REPORT_FULL = 2
} sj_zombie_report_state;

typedef struct sj_zombie_report {
    _Atomic uint32_t state;                 /* sj_zombie_report_state */
    uint32_t kind;                          /* sj_zombie_kind */
    uint32_t is_write;                      /* of an access */
    uint32_t size;                          /* of the block, bytes as asked for */
    uint64_t address;                       /* that was accessed or freed */
    uint64_t block;                         /* address of the block */
    char thread_name[SJ_ZOMBIE_NAME_BYTES]; /* of the use */
    sj_zombie_trace allocation;
    sj_zombie_trace release;
    sj_zombie_trace use;
    uint8_t allocation_stack[SJ_ZOMBIE_STACK_BYTES];
    uint8_t release_stack[SJ_ZOMBIE_STACK_BYTES];
    uint8_t use_stack[SJ_ZOMBIE_USE_STACK_BYTES];
} sj_zombie_report;

/* A module that is or was mapped; later entries hide earlier ones at the same addresses. */
typedef struct sj_zombie_module {
    uint64_t bias;
    uint64_t text_high; /* address behind its last segment; entry valid when not 0, set last */
    char path[SJ_ZOMBIE_PATH_BYTES];
} sj_zombie_module;

typedef struct sj_zombie_counters {
    _Atomic uint64_t guarded;        /* allocations that got a guarded block */
    _Atomic uint64_t released;       /* of them: freed, and then watched */
    _Atomic uint64_t evicted;        /* freed blocks whose room was used again */
    _Atomic uint64_t emptied;        /* freed blocks whose content was dropped to save memory */
    _Atomic uint64_t refused_size;   /* too large for a guarded block */
    _Atomic uint64_t refused_room;   /* no room in the pool */
    _Atomic uint64_t refused_memory; /* the kernel refused to change the protection */
    _Atomic uint64_t uses;           /* found, reported or not */
    _Atomic uint64_t suppressed;     /* not reported: limit per minute, no free room */
} sj_zombie_counters;

typedef struct sj_zombie_region {
    uint64_t magic;
    uint32_t version;
    _Atomic uint32_t refusal; /* sj_zombie_refusal, by the monitor */
    sj_zombie_settings settings;
    sj_zombie_counters counters;
    /* The recorder counts up how often memory was short; the monitor, which then halves what freed
     * blocks keep, how far it has followed. */
    _Atomic uint32_t shrinks_wanted;
    _Atomic uint32_t shrinks_done;
    uint32_t heads[SJ_HEADS];             /* 1 + index of the function in the plan; 0: not in it */
    uint64_t libc_offset;                 /* of malloc in the C library that was planned */
    char plan_paths[SJ_HEAP_HALVES][512]; /* of the plans of the C library's entries; "": none */
    _Atomic uint32_t module_count;
    uint32_t reserved;
    sj_zombie_module modules[SJ_ZOMBIE_MODULES];
    sj_zombie_report reports[SJ_ZOMBIE_REPORTS];
} sj_zombie_region;

#endif
