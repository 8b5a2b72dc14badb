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
    SJ_ZOMBIES_VERSION = 7,
    SJ_ZOMBIE_REPORTS = 64,
    SJ_ZOMBIE_MODULES = 512,
    SJ_ZOMBIE_PATH_BYTES = 240,
    SJ_ZOMBIE_REGISTERS = 17, /* by DWARF number, x86-64; the last is the program counter */
    SJ_ZOMBIE_STACK_BYTES = 4096,
    SJ_ZOMBIE_USE_STACK_BYTES = 8192,
    SJ_ZOMBIE_DEEP_BYTES = 65536, /* of a use's stack, as long as there is room */
    SJ_ZOMBIE_DEEP_STACKS = 8,
    SJ_ZOMBIE_NAME_BYTES = 16,
    SJ_ZOMBIE_PATTERNS_BYTES = 1024,
    SJ_ZOMBIE_CELLS = 64,
    SJ_ZOMBIE_SIZES = 16,
    SJ_ZOMBIE_SITES = 512,
    SJ_ZOMBIE_CLASS_BYTES = 256,
    SJ_ZOMBIE_LINEAGE_BYTES = 512,
    SJ_ZOMBIE_VALUES_BYTES = 1024,
    SJ_ZOMBIE_EVENTS = 12, /* of an object's history, in a report */
    SJ_ZOMBIE_EVENT_STACK_BYTES = 512
};

/* The functions whose entries are patched; names in agent/zombies/heads.c, in this order: what
 * gives blocks out, then, from SJ_HEAD_FREE on, what takes them back or is given one, then, from
 * SJ_HEAD_SIGACTION on, the C library's other functions. */
typedef enum sj_zombie_head {
    SJ_HEAD_MALLOC = 0,
    SJ_HEAD_CALLOC,
    SJ_HEAD_ALIGNED_ALLOC,
    SJ_HEAD_MEMALIGN,
    SJ_HEAD_POSIX_MEMALIGN,
    SJ_HEAD_VALLOC,
    SJ_HEAD_PVALLOC,
    SJ_HEAD_NEW,
    SJ_HEAD_NEW_NOTHROW,
    SJ_HEAD_NEW_ARRAY,
    SJ_HEAD_NEW_ARRAY_NOTHROW,
    SJ_HEAD_FREE,
    SJ_HEAD_REALLOC,
    SJ_HEAD_USABLE_SIZE,
    SJ_HEAD_CFREE, /* from here to SJ_HEAD_DELETE allocators' own names */
    SJ_HEAD_FREE_SIZED,
    SJ_HEAD_FREE_ALIGNED_SIZED,
    SJ_HEAD_DALLOCX,
    SJ_HEAD_SDALLOCX,
    SJ_HEAD_RALLOCX,
    SJ_HEAD_XALLOCX,
    SJ_HEAD_SALLOCX,
    SJ_HEAD_DELETE,
    SJ_HEAD_DELETE_NOTHROW,
    SJ_HEAD_DELETE_SIZED,
    SJ_HEAD_DELETE_ALIGNED,
    SJ_HEAD_DELETE_ALIGNED_NOTHROW,
    SJ_HEAD_DELETE_SIZED_ALIGNED,
    SJ_HEAD_DELETE_ARRAY,
    SJ_HEAD_DELETE_ARRAY_NOTHROW,
    SJ_HEAD_DELETE_ARRAY_SIZED,
    SJ_HEAD_DELETE_ARRAY_ALIGNED,
    SJ_HEAD_DELETE_ARRAY_ALIGNED_NOTHROW,
    SJ_HEAD_DELETE_ARRAY_SIZED_ALIGNED,
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

/* The modules that define the entries. Operators new and delete that the allocator does not define
 * itself come from the C++ library, and allocate through it. */
typedef enum sj_heap_part {
    SJ_HEAP_ALLOCATOR = 0,
    SJ_HEAP_LIBRARY = 1,   /* the C library, where it is not the allocator */
    SJ_HEAP_OPERATORS = 2, /* the C++ library */
    SJ_HEAP_PARTS
} sj_heap_part;

/* A module's entries have a plan for each half, because the second stays longer than the first. */
typedef enum sj_zombie_half {
    SJ_HEAP_TAKERS = 0,
    SJ_HEAP_GIVERS = 1,
    SJ_HEAP_HALVES
} sj_zombie_half;

typedef struct sj_heap_plan {
    char paths[SJ_HEAP_HALVES][512]; /* of the plan files; "": no entry of this half */
    uint64_t anchor_offset;          /* of anchor_name in the module that was planned */
    char anchor_name[32];            /* a function of the module; "": the part has no plan */
} sj_heap_plan;

typedef enum sj_zombie_kind {
    SJ_ZOMBIE_USE_AFTER_FREE = 1,
    SJ_ZOMBIE_OVERFLOW = 2,
    SJ_ZOMBIE_UNDERFLOW = 3,
    SJ_ZOMBIE_DOUBLE_FREE = 4,
    SJ_ZOMBIE_INVALID_FREE = 5,
    SJ_ZOMBIE_OVERFLOW_AT_FREE = 6,  /* bytes behind the block had changed when it was freed */
    SJ_ZOMBIE_UNDERFLOW_AT_FREE = 7, /* likewise in front of it */
    SJ_ZOMBIE_REALLOC_AFTER_FREE = 8,
    SJ_ZOMBIE_WILD_ACCESS = 9,       /* of a guard page that belongs to no block */
    SJ_ZOMBIE_MESSAGE = 10,          /* to a freed object */
    SJ_ZOMBIE_MISMATCHED_FREE = 11,  /* by another family: malloc, new, new[] */
    SJ_ZOMBIE_WRITE_AFTER_FREE = 12, /* found when a quarantined block was let go; by whom is not
                                        known */
    SJ_ZOMBIE_VIRTUAL_CALL = 13      /* of a method of a quarantined C++ object */
} sj_zombie_kind;

typedef enum sj_zombie_on_use {
    SJ_ZOMBIE_GO_ON = 0,
    SJ_ZOMBIE_STOP = 1, /* the program ends by the signal of its fault, or SIGABRT */
    SJ_ZOMBIE_FREE = 2  /* as GO_ON, and what was used is kept no longer: objects only */
} sj_zombie_on_use;

/* Why a process, or its objects, are not monitored. */
typedef enum sj_zombie_refusal {
    SJ_ZOMBIE_MONITORED = 0,
    SJ_ZOMBIE_NO_PLAN = 1,       /* the entries cannot all be patched */
    SJ_ZOMBIE_OTHER_MALLOC = 2,  /* malloc is not the one that was planned */
    SJ_ZOMBIE_NO_MEMORY = 3,     /* no room for the pool */
    SJ_ZOMBIE_CODE_DIFFERS = 4,  /* the entries in memory are not those of the file */
    SJ_ZOMBIE_MACHINE = 5,       /* not supported on this processor */
    SJ_ZOMBIE_NO_HANDLER = 6,    /* SIGSEGV cannot be handled */
    SJ_ZOMBIE_OTHER_AGENT = 7,   /* another version's agent has left blocks */
    SJ_ZOMBIE_OTHER_RUNTIME = 8, /* the language's runtime has another layout */
    SJ_ZOMBIE_OWN_ZOMBIES = 9,   /* the program keeps freed objects itself: NSZombieEnabled */
    SJ_ZOMBIE_SANITIZER = 10,    /* malloc is a sanitizer's, which finds the same */
    SJ_ZOMBIE_COLLECTOR = 11,    /* malloc is a garbage collector's, which would not see blocks */
    SJ_ZOMBIE_NO_SIZES = 12,     /* counting: the allocator does not say how large blocks are */
    SJ_ZOMBIE_NOT_COUNTING = 13, /* counting: the entries were patched without it */
    SJ_ZOMBIE_NOT_STARTED = 255  /* the monitor has not said anything */
} sj_zombie_refusal;

/* Objects of a language whose messages are looked up: freed ones are kept for a while, and answer
 * every message by a report and zero. */
typedef struct sj_zombie_objects {
    uint32_t is_on;
    uint32_t with_system;        /* classes of system libraries, too */
    uint32_t stack_bytes;        /* kept of each release's stack; 0: not even registers */
    uint32_t queue_objects;      /* that are kept at once */
    uint32_t queue_kib;          /* of their instances, with what is noted of each */
    uint32_t queue_age_ms;       /* 0: any */
    uint32_t history;            /* 1: allocation, retain, release and autorelease are kept */
    uint32_t on_use;             /* sj_zombie_on_use */
    _Atomic uint32_t generation; /* of the patterns; odd while they are being written */
    /* Patterns of names with * and ?, each with its NUL, then another; none: every class that is no
     * system library's. */
    char classes[SJ_ZOMBIE_PATTERNS_BYTES];
    char exclude[SJ_ZOMBIE_PATTERNS_BYTES];
    char history_of[SJ_ZOMBIE_PATTERNS_BYTES]; /* whose history is kept; none: of all watched */
} sj_zombie_objects;

/* Bytes that an allocation asks for, both ends included. */
typedef struct sj_zombie_sizes {
    uint32_t least;
    uint32_t most;
} sj_zombie_sizes;

/* What is guarded always, however rarely others are sampled. Patterns as of sj_zombie_objects. */
typedef struct sj_zombie_guard {
    uint32_t size_count;
    uint32_t reserved;
    sj_zombie_sizes sizes[SJ_ZOMBIE_SIZES];
    char callers[SJ_ZOMBIE_PATTERNS_BYTES]; /* functions that call the allocator; for the recorder,
                                               which writes their places to `sites` */
    char classes[SJ_ZOMBIE_PATTERNS_BYTES]; /* of Objective-C; changed with objects.generation */
} sj_zombie_guard;

typedef struct sj_zombie_settings {
    uint32_t one_in;      /* one allocation in so many gets a guarded block, on average; 1: all */
    uint32_t slots;       /* blocks that are watched at once, freed ones included */
    uint32_t stack_bytes; /* kept of each allocation's and free's stack */
    uint32_t on_use;      /* sj_zombie_on_use */
    uint32_t reports_per_minute;
    uint32_t memory_kib; /* of the blocks' pages, freed ones included that keep their content */
    /* Ordinary blocks that are kept for a while when they are freed; 0: none are. Both limits
     * count, the second with what is noted of each. */
    uint32_t quarantine_blocks; /* as many as when the process began to be watched, or none */
    uint32_t quarantine_kib;
    uint32_t vtables;          /* 1: C++ objects in quarantine answer virtual calls */
    uint32_t budget_per_mille; /* of the program's CPU time; 0: any; for the recorder */
    uint32_t counts;           /* 1: what threads allocate and free is counted */
    uint32_t reserved;
    sj_zombie_guard guard;
    sj_zombie_objects objects;
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

typedef enum sj_zombie_event_kind {
    SJ_ZOMBIE_EVENT_NONE = 0,
    SJ_ZOMBIE_EVENT_ALLOCATION = 1,
    SJ_ZOMBIE_EVENT_RETAIN = 2,
    SJ_ZOMBIE_EVENT_RELEASE = 3,
    SJ_ZOMBIE_EVENT_AUTORELEASE = 4
} sj_zombie_event_kind;

/* What happened to an object before it was freed. */
typedef struct sj_zombie_event {
    uint32_t kind;  /* sj_zombie_event_kind */
    uint32_t count; /* of its owners, afterwards */
    sj_zombie_trace trace;
    uint8_t stack[SJ_ZOMBIE_EVENT_STACK_BYTES];
} sj_zombie_event;

/* A freed object that a message was sent to; texts end with NUL. */
typedef struct sj_zombie_object {
    char class_name[SJ_ZOMBIE_CLASS_BYTES]; /* as written in the source */
    char real_class[SJ_ZOMBIE_CLASS_BYTES]; /* that observers had put in its place; "": none */
    char selector[SJ_ZOMBIE_CLASS_BYTES];
    char lineage[SJ_ZOMBIE_LINEAGE_BYTES]; /* ancestors, nearest first, each with its NUL */
    char values[SJ_ZOMBIE_VALUES_BYTES];   /* a line for each instance variable: type name value */
    uint32_t is_whole; /* 1: the history begins with the allocation, and no event is missing */
    uint32_t event_count;
    sj_zombie_event events[SJ_ZOMBIE_EVENTS];
} sj_zombie_object;

typedef struct sj_zombie_report {
    _Atomic uint32_t state;                 /* sj_zombie_report_state */
    uint32_t kind;                          /* sj_zombie_kind */
    uint32_t is_write;                      /* of an access */
    uint32_t size;                          /* of the block, bytes as asked for */
    uint64_t address;                       /* that was accessed or freed */
    uint64_t block;                         /* address of the block */
    char thread_name[SJ_ZOMBIE_NAME_BYTES]; /* of the use */
    uint32_t deep_stack;                    /* 1 + its number, in the place of use_stack */
    uint32_t place;                         /* of a virtual call: in the table, from 0 */
    sj_zombie_trace allocation;
    sj_zombie_trace release;
    sj_zombie_trace use;
    uint8_t allocation_stack[SJ_ZOMBIE_STACK_BYTES];
    uint8_t release_stack[SJ_ZOMBIE_STACK_BYTES];
    uint8_t use_stack[SJ_ZOMBIE_USE_STACK_BYTES];
    uint64_t code;           /* of a virtual call: address of the method that was meant */
    sj_zombie_object object; /* of a message; of a virtual call, the type's mangled name; of a
                                guarded object's memory, its class only; "": no object */
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
    /* Freed objects of watched classes that were kept, see `kept` below, and let go again. */
    _Atomic uint64_t kept_full;            /* let go because newer ones needed the room */
    _Atomic uint64_t kept_old;             /* because of their age */
    _Atomic uint64_t kept_pressure;        /* because memory was short, or on command */
    _Atomic uint64_t kept_left;            /* when the program was left */
    _Atomic uint64_t kept_used;            /* after a use */
    _Atomic uint64_t not_kept;             /* freed at once: no room, or in a signal handler */
    _Atomic uint64_t methods_without_door; /* no room: kept code of theirs is not told apart */
    /* Freed blocks that were quarantined, and let go again. */
    _Atomic uint64_t quarantined;
    _Atomic uint64_t quarantine_full;     /* let go because newer ones needed the room */
    _Atomic uint64_t quarantine_pressure; /* because memory was short, or on command */
    _Atomic uint64_t quarantine_left;     /* when the program was left, or the policy changed */
    /* What watching has taken of the program's own time, in ticks. */
    _Atomic uint64_t heap_ticks;
    _Atomic uint64_t history_ticks;
    _Atomic uint64_t quarantine_ticks;
    _Atomic uint64_t not_quarantined; /* too large or too small, or in a signal handler */
} sj_zombie_counters;

/* Taken by the monitor together with a report, given back by the recorder. */
typedef struct sj_zombie_deep_stack {
    _Atomic uint32_t is_taken;
    uint32_t reserved;
    uint8_t bytes[SJ_ZOMBIE_DEEP_BYTES];
} sj_zombie_deep_stack;

/* Counted by one thread each, but for the last. */
typedef struct sj_zombie_cell {
    _Atomic uint64_t count;
    _Atomic uint64_t full; /* let go because newer ones took their places; as kept_full */
    uint64_t apart[6];
} sj_zombie_cell;

/* Code of a function whose calls of the allocator are guarded always. */
typedef struct sj_zombie_site {
    uint64_t low;
    uint64_t high; /* behind its last byte */
} sj_zombie_site;

typedef struct sj_zombie_region {
    uint64_t magic;
    uint32_t version;
    _Atomic uint32_t refusal; /* sj_zombie_refusal, by the monitor */
    _Atomic uint32_t objects_refusal;
    _Atomic uint32_t counting_refusal;
    sj_zombie_settings settings;
    sj_zombie_counters counters;
    sj_zombie_cell kept[SJ_ZOMBIE_CELLS]; /* their sum: freed objects that were kept */
    /* The recorder counts up how often memory was short; the monitor, which then halves what freed
     * blocks keep, how far it has followed. */
    _Atomic uint32_t shrinks_wanted;
    _Atomic uint32_t shrinks_done;
    uint32_t heads[SJ_HEADS];        /* 1 + index of the function in its part's plan; 0: in none */
    uint8_t parts[SJ_HEADS];         /* sj_heap_part */
    uint8_t is_forwarding[SJ_HEADS]; /* 1: it allocates by calling another entry, which counts */
    uint32_t why_not;                /* sj_zombie_refusal: why there is no plan */
    sj_heap_plan plans[SJ_HEAP_PARTS];
    /* By the recorder, which keeps the overhead budget: one allocation in `one_in <<
     * sampling_shift` is guarded, of `1 << quarantine_shift` blocks that a thread frees one is
     * quarantined, and histories are not kept. */
    _Atomic uint32_t sampling_shift;
    _Atomic uint32_t quarantine_shift;
    _Atomic uint32_t is_history_paused;
    _Atomic uint32_t module_count;
    _Atomic uint32_t site_count; /* of `sites`; by the recorder */
    sj_zombie_site sites[SJ_ZOMBIE_SITES];
    sj_zombie_module modules[SJ_ZOMBIE_MODULES];
    sj_zombie_report reports[SJ_ZOMBIE_REPORTS];
    sj_zombie_deep_stack deep[SJ_ZOMBIE_DEEP_STACKS];
} sj_zombie_region;

#endif
