/* The zombie region: memory that the monitor of freed memory in one process shares with the
 * recorder. The recorder creates the file `<pid>.<n>.zombies` beside the arena before it replies to
 * HELLO, with its whole size allocated. The monitor maps it, reads the settings and writes reports.
 *
 * The `state` of a report says which side owns it. The monitor changes it from FREE to WRITING by
 * compare and exchange, then to FULL (release). The recorder reads it (acquire) and sets it back to
 * FREE (release).
 *
 * A report that a killed process left in WRITING is never read. The recorder trusts no number that
 * it reads here. All integers have the machine's byte order. */
#ifndef SJ_AGENT_ABI_ZOMBIES_H
#define SJ_AGENT_ABI_ZOMBIES_H

#include <stdatomic.h>
#include <stdint.h>

#define SJ_ZOMBIES_MAGIC UINT64_C(0x534549424d4f5a53) /* "SZOMBIES" */

enum {
    SJ_ZOMBIES_VERSION = 9,
    SJ_ZOMBIE_REPORTS = 64,
    SJ_ZOMBIE_MODULES = 512,
    SJ_ZOMBIE_PATH_BYTES = 240,
    /* Indexed by DWARF number, x86-64; the last one is the program counter. */
    SJ_ZOMBIE_REGISTERS = 17,
    SJ_ZOMBIE_STACK_BYTES = 4096,
    SJ_ZOMBIE_USE_STACK_BYTES = 8192,
    SJ_ZOMBIE_DEEP_BYTES = 65536, /* Bytes of a use's stack, if a large buffer is free. */
    SJ_ZOMBIE_DEEP_STACKS = 8,
    SJ_ZOMBIE_NAME_BYTES = 16,
    SJ_ZOMBIE_PATTERNS_BYTES = 1024,
    SJ_ZOMBIE_CELLS = 64,
    SJ_ZOMBIE_SIZES = 16,
    SJ_ZOMBIE_SITES = 512,
    SJ_ZOMBIE_CLASS_BYTES = 256,
    SJ_ZOMBIE_LINEAGE_BYTES = 512,
    SJ_ZOMBIE_VALUES_BYTES = 1024,
    SJ_ZOMBIE_EVENTS = 12, /* Events of an object's history in a report. */
    SJ_ZOMBIE_EVENT_STACK_BYTES = 512
};

/* Functions whose entries are patched. Their names are in agent/abi/heap_entry_names.h, in this
 * order. Allocating functions come first. The functions from SJ_ENTRY_FREE on free a block, or have
 * a block as argument. The functions from SJ_ENTRY_SIGACTION on are other functions of the C
 * library. */
typedef enum sj_heap_entry {
    SJ_ENTRY_MALLOC = 0,
    SJ_ENTRY_CALLOC,
    SJ_ENTRY_ALIGNED_ALLOC,
    SJ_ENTRY_MEMALIGN,
    SJ_ENTRY_POSIX_MEMALIGN,
    SJ_ENTRY_VALLOC,
    SJ_ENTRY_PVALLOC,
    SJ_ENTRY_NEW,
    SJ_ENTRY_NEW_NOTHROW,
    SJ_ENTRY_NEW_ARRAY,
    SJ_ENTRY_NEW_ARRAY_NOTHROW,
    SJ_ENTRY_FREE,
    SJ_ENTRY_REALLOC,
    SJ_ENTRY_USABLE_SIZE,
    SJ_ENTRY_CFREE, /* From here to SJ_ENTRY_SALLOCX: functions that only some allocators have. */
    SJ_ENTRY_FREE_SIZED,
    SJ_ENTRY_FREE_ALIGNED_SIZED,
    SJ_ENTRY_DALLOCX,
    SJ_ENTRY_SDALLOCX,
    SJ_ENTRY_RALLOCX,
    SJ_ENTRY_XALLOCX,
    SJ_ENTRY_SALLOCX,
    SJ_ENTRY_DELETE,
    SJ_ENTRY_DELETE_NOTHROW,
    SJ_ENTRY_DELETE_SIZED,
    SJ_ENTRY_DELETE_ALIGNED,
    SJ_ENTRY_DELETE_ALIGNED_NOTHROW,
    SJ_ENTRY_DELETE_SIZED_ALIGNED,
    SJ_ENTRY_DELETE_ARRAY,
    SJ_ENTRY_DELETE_ARRAY_NOTHROW,
    SJ_ENTRY_DELETE_ARRAY_SIZED,
    SJ_ENTRY_DELETE_ARRAY_ALIGNED,
    SJ_ENTRY_DELETE_ARRAY_ALIGNED_NOTHROW,
    SJ_ENTRY_DELETE_ARRAY_SIZED_ALIGNED,
    SJ_ENTRY_SIGACTION,
    SJ_ENTRY_SIGMASK,
    /* SJ_ENTRY_READ to SJ_ENTRY_SENDTO: system calls with a buffer as the second argument and its
     * size as the third one. */
    SJ_ENTRY_READ,
    SJ_ENTRY_WRITE,
    SJ_ENTRY_PREAD,
    SJ_ENTRY_PWRITE,
    SJ_ENTRY_RECV,
    SJ_ENTRY_SEND,
    SJ_ENTRY_RECVFROM,
    SJ_ENTRY_SENDTO,
    /* From here on: system calls whose buffers are found in other ways: vectors, messages, paths,
     * buffers of a fixed size, and arguments of ioctl. */
    SJ_ENTRY_READV,
    SJ_ENTRY_WRITEV,
    SJ_ENTRY_PREADV,
    SJ_ENTRY_PWRITEV,
    SJ_ENTRY_RECVMSG,
    SJ_ENTRY_SENDMSG,
    SJ_ENTRY_OPEN,
    SJ_ENTRY_OPENAT,
    SJ_ENTRY_STAT,
    SJ_ENTRY_LSTAT,
    SJ_ENTRY_FSTAT,
    SJ_ENTRY_FSTATAT,
    /* SJ_ENTRY_XSTAT to SJ_ENTRY_FXSTAT: programs that were linked with a glibc before 2.33 call
     * these. */
    SJ_ENTRY_XSTAT,
    SJ_ENTRY_LXSTAT,
    SJ_ENTRY_FXSTAT,
    SJ_ENTRY_IOCTL,
    SJ_HEAP_ENTRIES
} sj_heap_entry;

/* Modules that define the entries. If the allocator does not define operators new and delete, they
 * come from the C++ library, which allocates through it. */
typedef enum sj_heap_part {
    SJ_HEAP_ALLOCATOR = 0,
    SJ_HEAP_LIBRARY = 1,   /* The C library, if it is not the allocator. */
    SJ_HEAP_OPERATORS = 2, /* The C++ library. */
    SJ_HEAP_PARTS
} sj_heap_part;

/* The allocating and the freeing entries of a module have a plan each, because the freeing ones
 * stay patched longer. */
typedef enum sj_zombie_half {
    SJ_HEAP_ALLOCATING = 0,
    SJ_HEAP_FREEING = 1,
    SJ_HEAP_HALVES
} sj_zombie_half;

typedef struct sj_heap_plan {
    /* Paths of the plan files. "": the module has no such entry. */
    char paths[SJ_HEAP_HALVES][512];
    uint64_t anchor_offset; /* Offset of anchor_name in the planned module. */
    char anchor_name[32];   /* A function of the module. "": the part has no plan. */
} sj_heap_plan;

typedef enum sj_zombie_kind {
    SJ_ZOMBIE_USE_AFTER_FREE = 1,
    SJ_ZOMBIE_OVERFLOW = 2,
    SJ_ZOMBIE_UNDERFLOW = 3,
    SJ_ZOMBIE_DOUBLE_FREE = 4,
    SJ_ZOMBIE_INVALID_FREE = 5,
    SJ_ZOMBIE_OVERFLOW_AT_FREE = 6,  /* Bytes after the block had changed when it was freed. */
    SJ_ZOMBIE_UNDERFLOW_AT_FREE = 7, /* Bytes before the block had changed when it was freed. */
    SJ_ZOMBIE_REALLOC_AFTER_FREE = 8,
    SJ_ZOMBIE_WILD_ACCESS = 9,      /* An access to a guard page that belongs to no block. */
    SJ_ZOMBIE_MESSAGE = 10,         /* A message to a freed object. */
    SJ_ZOMBIE_MISMATCHED_FREE = 11, /* Freed by another family: malloc, new, new[]. */
    /* Found when a delayed block was finally freed. It is not known which code wrote. */
    SJ_ZOMBIE_WRITE_AFTER_FREE = 12,
    SJ_ZOMBIE_VIRTUAL_CALL = 13, /* A virtual call on an object whose free is delayed. */
    /* Bytes after or before the block had changed when a call got the live block as an argument:
     * malloc_usable_size or a system call. */
    SJ_ZOMBIE_OVERFLOW_AT_CALL = 14,
    SJ_ZOMBIE_UNDERFLOW_AT_CALL = 15
} sj_zombie_kind;

/* The end of its pages at which a guarded block lies. A closed page is next to that end. The bytes
 * at the other end have a pattern, which is checked. */
typedef enum sj_zombie_align {
    SJ_ZOMBIE_ALIGN_END = 0,
    SJ_ZOMBIE_ALIGN_START = 1,
    SJ_ZOMBIE_ALIGN_BOTH = 2 /* Some blocks lie at the end, the others at the start. */
} sj_zombie_align;

typedef enum sj_zombie_on_use {
    SJ_ZOMBIE_CONTINUE = 0,
    SJ_ZOMBIE_STOP = 1, /* The program ends by the signal of its fault, or by SIGABRT. */
    SJ_ZOMBIE_FREE = 2  /* Continues and frees the used object. Only for objects. */
} sj_zombie_on_use;

/* Why a process, or its objects, are not monitored. */
typedef enum sj_zombie_refusal {
    SJ_ZOMBIE_MONITORED = 0,
    SJ_ZOMBIE_NO_PLAN = 1,       /* Not all entries can be patched. */
    SJ_ZOMBIE_OTHER_MALLOC = 2,  /* malloc is not the function that was planned. */
    SJ_ZOMBIE_NO_MEMORY = 3,     /* The pool could not be mapped. */
    SJ_ZOMBIE_CODE_DIFFERS = 4,  /* The entries in memory differ from those in the file. */
    SJ_ZOMBIE_MACHINE = 5,       /* The processor is not supported. */
    SJ_ZOMBIE_NO_HANDLER = 6,    /* SIGSEGV cannot be handled. */
    SJ_ZOMBIE_OTHER_AGENT = 7,   /* An agent of another version has left blocks. */
    SJ_ZOMBIE_OTHER_RUNTIME = 8, /* The language's runtime has another layout. */
    SJ_ZOMBIE_OWN_ZOMBIES = 9,   /* The program keeps freed objects itself: NSZombieEnabled. */
    SJ_ZOMBIE_SANITIZER = 10,    /* malloc belongs to a sanitizer, which finds the same mistakes. */
    /* malloc belongs to a garbage collector, which would not see guarded blocks. */
    SJ_ZOMBIE_COLLECTOR = 11,
    SJ_ZOMBIE_NO_SIZES = 12,     /* Counting: the allocator does not know the sizes of blocks. */
    SJ_ZOMBIE_NOT_COUNTING = 13, /* Counting: the entries were patched without it. */
    SJ_ZOMBIE_MUSL = 14,         /* The C library is musl. */
    SJ_ZOMBIE_NOT_STARTED = 255  /* The monitor has not started yet. */
} sj_zombie_refusal;

/* Objects of a language with message look-up. Freed objects are kept for a while; a message to one
 * is reported and returns zero. */
typedef struct sj_zombie_objects {
    uint32_t is_on;
    uint32_t with_system; /* 1: also classes of system libraries. */
    uint32_t stack_bytes; /* Bytes of each release's stack that are kept. 0: not even registers. */
    uint32_t queue_objects; /* Maximum number of objects that are kept at once. */
    uint32_t queue_kib;     /* Maximum memory of kept objects and their records. */
    uint32_t queue_age_ms;  /* Longest time that an object is kept. 0: no limit. */
    uint32_t history;       /* 1: allocation, retain, release and autorelease are recorded. */
    uint32_t on_use;        /* An sj_zombie_on_use. */
    /* Generation of the patterns. Its lowest bit is set while the recorder writes them. */
    _Atomic uint32_t generation;
    /* Patterns of class names with * and ?, each with its NUL; an empty one ends the list. No
     * pattern: every class outside of system libraries. */
    char classes[SJ_ZOMBIE_PATTERNS_BYTES];
    char exclude[SJ_ZOMBIE_PATTERNS_BYTES];
    /* Classes with a history. No pattern: all watched classes. */
    char history_of[SJ_ZOMBIE_PATTERNS_BYTES];
} sj_zombie_objects;

/* A range of requested sizes, both ends included. */
typedef struct sj_zombie_sizes {
    uint32_t least;
    uint32_t most;
} sj_zombie_sizes;

/* Allocations that are always guarded. Patterns have the format of sj_zombie_objects. */
typedef struct sj_zombie_guard {
    uint32_t size_count;
    uint32_t reserved;
    sj_zombie_sizes sizes[SJ_ZOMBIE_SIZES];
    /* Functions that call the allocator. The recorder reads these and writes their addresses to
     * `sites`. */
    char callers[SJ_ZOMBIE_PATTERNS_BYTES];
    /* Objective-C classes; changed together with objects.generation. */
    char classes[SJ_ZOMBIE_PATTERNS_BYTES];
} sj_zombie_guard;

typedef struct sj_zombie_settings {
    uint32_t one_in; /* On average one allocation in so many gets a guarded block. 1: all do. */
    uint32_t slots;  /* Maximum number of blocks that are watched at once, including freed ones. */
    /* If more freed blocks than this wait, the oldest one's slot is reused, even if some slots were
     * never used. 0: no slot is reused before all slots were used. */
    uint32_t freed_slots;
    uint32_t stack_bytes; /* Bytes of the stack of each allocation and free that are kept. */
    uint32_t align;       /* An sj_zombie_align. */
    uint32_t on_use;      /* An sj_zombie_on_use. */
    uint32_t reports_per_minute;
    /* Maximum memory of the blocks' pages, including freed blocks that keep their content. */
    uint32_t memory_kib;
    /* Limits of delayed frees: the number of blocks, and the memory of blocks and their records. 0:
     * no frees are delayed. The recorder does not change delayed_blocks once the process is being
     * watched, unless it was 0. */
    uint32_t delayed_blocks;
    uint32_t delayed_kib;
    uint32_t vtables; /* 1: virtual calls on objects whose free is delayed are reported. */
    /* Limit of the monitor's share of the program's CPU time, in 1/1000; 0: no limit. Only the
     * recorder reads it. */
    uint32_t budget_per_mille;
    /* 1: the numbers and bytes of each thread's allocations and frees are counted. */
    uint32_t counts;
    sj_zombie_guard guard;
    sj_zombie_objects objects;
} sj_zombie_settings;

/* State of a thread at one moment, from which its stack can be unwound elsewhere. */
typedef struct sj_zombie_trace {
    uint64_t ticks; /* 0: this did not happen. */
    uint32_t tid;
    uint32_t stack_bytes; /* Valid bytes of the stack, from the stack pointer on. */
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

/* An event in an object's life before it was freed. */
typedef struct sj_zombie_event {
    uint32_t kind;  /* An sj_zombie_event_kind. */
    uint32_t count; /* Number of owners after the event. */
    sj_zombie_trace trace;
    uint8_t stack[SJ_ZOMBIE_EVENT_STACK_BYTES];
} sj_zombie_event;

/* A freed object that got a message. Texts end with a NUL. */
typedef struct sj_zombie_object {
    char class_name[SJ_ZOMBIE_CLASS_BYTES]; /* As written in the source. */
    /* The class that an observer has set instead; "": none. */
    char real_class[SJ_ZOMBIE_CLASS_BYTES];
    char selector[SJ_ZOMBIE_CLASS_BYTES];
    char lineage[SJ_ZOMBIE_LINEAGE_BYTES]; /* Ancestors, nearest first, each with its NUL. */
    /* One line for each instance variable: type, name, value. */
    char values[SJ_ZOMBIE_VALUES_BYTES];
    uint32_t is_whole; /* 1: the history begins with the allocation, and no event is missing. */
    uint32_t event_count;
    sj_zombie_event events[SJ_ZOMBIE_EVENTS];
} sj_zombie_object;

typedef struct sj_zombie_report {
    _Atomic uint32_t state;                 /* An sj_zombie_report_state. */
    uint32_t kind;                          /* An sj_zombie_kind. */
    uint32_t is_write;                      /* 1: the access was a write. */
    uint32_t size;                          /* Requested size of the block. */
    uint64_t address;                       /* Address that was accessed or freed. */
    uint64_t block;                         /* Address of the block. */
    char thread_name[SJ_ZOMBIE_NAME_BYTES]; /* Name of the thread that used the block. */
    /* 1 + the number of the large stack buffer that replaces use_stack. 0: none. */
    uint32_t deep_stack;
    uint32_t place; /* Index in the virtual table of a virtual call. */
    sj_zombie_trace allocation;
    sj_zombie_trace release;
    sj_zombie_trace use;
    uint8_t allocation_stack[SJ_ZOMBIE_STACK_BYTES];
    uint8_t release_stack[SJ_ZOMBIE_STACK_BYTES];
    uint8_t use_stack[SJ_ZOMBIE_USE_STACK_BYTES];
    uint64_t code; /* Address of the method of a virtual call. */
    /* The receiver of a message. For a virtual call, class_name is the type's mangled name. For
     * memory of a guarded object, only its class. "": no object. */
    sj_zombie_object object;
} sj_zombie_report;

/* A module that is or was mapped. Later entries hide earlier ones at the same addresses. */
typedef struct sj_zombie_module {
    uint64_t bias;
    /* Address after its last segment. It is set last: the entry is valid if it is not 0. */
    uint64_t text_high;
    char path[SJ_ZOMBIE_PATH_BYTES];
} sj_zombie_module;

typedef struct sj_zombie_counters {
    _Atomic uint64_t guarded;  /* Allocations that got a guarded block. */
    _Atomic uint64_t released; /* Guarded blocks that were freed, and are then watched. */
    _Atomic uint64_t evicted;  /* Freed blocks whose slot was reused. */
    _Atomic uint64_t emptied;  /* Freed blocks whose content was dropped to save memory. */
    /* Allocations that were empty, too large, or resized a large block in a small step. */
    _Atomic uint64_t refused_size;
    _Atomic uint64_t refused_full; /* Allocations for which no slot was free. */
    /* Allocations that would have exceeded settings.memory_kib. */
    _Atomic uint64_t refused_limit;
    /* Allocations that were not sampled. Estimated without bias: each sampled allocation adds the
     * mean sampling distance, less 1. If the policy has rules that guard allocations, the number is
     * counted instead, less up to 63 for each thread. */
    _Atomic uint64_t not_sampled;
    /* Allocations for which the kernel refused to open or close pages. */
    _Atomic uint64_t refused_memory;
    _Atomic uint64_t uses; /* Uses that were found, reported or not. */
    /* Uses that were not reported because of the limit per minute, or because no report was free.
     */
    _Atomic uint64_t suppressed;
    /* Freed objects of watched classes that were kept (see `kept` below) and then freed. */
    _Atomic uint64_t kept_full;     /* Freed because newer objects needed their place. */
    _Atomic uint64_t kept_old;      /* Freed because of their age. */
    _Atomic uint64_t kept_pressure; /* Freed because memory was short, or on command. */
    _Atomic uint64_t kept_left;     /* Freed at a detach. */
    _Atomic uint64_t kept_used;     /* Freed after a use. */
    _Atomic uint64_t not_kept;      /* Never kept: no place was free, or in a signal handler. */
    /* No trampoline was free, so code of these methods that the program keeps is not covered. */
    _Atomic uint64_t methods_without_trampoline;
    /* Blocks whose free was delayed, and then done. */
    _Atomic uint64_t delayed;
    _Atomic uint64_t delayed_full;     /* Freed because newer blocks needed their place. */
    _Atomic uint64_t delayed_pressure; /* Freed because memory was short, or on command. */
    _Atomic uint64_t delayed_left;     /* Freed at a detach, or when the policy changed. */
    /* Time that watching has cost the program, in ticks. */
    _Atomic uint64_t heap_ticks;
    _Atomic uint64_t history_ticks;
    _Atomic uint64_t delayed_ticks;
    /* Not delayed: too large, too small, or in a signal handler. */
    _Atomic uint64_t not_delayed;
} sj_zombie_counters;

/* A large buffer for the stack of a use. The monitor claims it together with a report; the recorder
 * releases both. */
typedef struct sj_zombie_deep_stack {
    _Atomic uint32_t is_used;
    uint32_t reserved;
    uint8_t bytes[SJ_ZOMBIE_DEEP_BYTES];
} sj_zombie_deep_stack;

/* Counters of one thread. The threads that have none of their own share the last cell. */
typedef struct sj_zombie_cell {
    _Atomic uint64_t count;
    /* Objects freed because newer ones needed their place; part of kept_full. */
    _Atomic uint64_t full;
    uint64_t apart[6];
} sj_zombie_cell;

/* Code of a function whose allocations are always guarded. */
typedef struct sj_zombie_site {
    uint64_t low;
    uint64_t high; /* Address after its last byte. */
} sj_zombie_site;

typedef struct sj_zombie_region {
    uint64_t magic;
    uint32_t version;
    _Atomic uint32_t refusal; /* An sj_zombie_refusal; the monitor writes it. */
    _Atomic uint32_t objects_refusal;
    _Atomic uint32_t counting_refusal;
    sj_zombie_settings settings;
    sj_zombie_counters counters;
    /* Their sum is the number of freed objects that were kept. */
    sj_zombie_cell kept[SJ_ZOMBIE_CELLS];
    /* The recorder increments shrinks_wanted when memory is short. The monitor then halves the
     * memory of freed blocks and copies the number to shrinks_done. */
    _Atomic uint32_t shrinks_wanted;
    _Atomic uint32_t shrinks_done;
    /* 1 + index of the function in the plan of its part. 0: not patched. */
    uint32_t heap_entries[SJ_HEAP_ENTRIES];
    uint8_t parts[SJ_HEAP_ENTRIES]; /* An sj_heap_part. */
    /* 1: the function allocates by calling another patched entry, which counts the allocation. */
    uint8_t is_forwarding[SJ_HEAP_ENTRIES];
    uint32_t why_not; /* An sj_zombie_refusal: why there is no plan. */
    sj_heap_plan plans[SJ_HEAP_PARTS];
    /* The recorder writes these to keep the overhead budget. One allocation in `one_in <<
     * sampling_shift` is guarded. Of `1 << delayed_shift` frees of a thread, one is delayed.
     * Histories may be paused. */
    _Atomic uint32_t sampling_shift;
    _Atomic uint32_t delayed_shift;
    _Atomic uint32_t is_history_paused;
    _Atomic uint32_t module_count;
    _Atomic uint32_t site_count; /* Number of used `sites`; the recorder writes it. */
    sj_zombie_site sites[SJ_ZOMBIE_SITES];
    sj_zombie_module modules[SJ_ZOMBIE_MODULES];
    sj_zombie_report reports[SJ_ZOMBIE_REPORTS];
    sj_zombie_deep_stack deep[SJ_ZOMBIE_DEEP_STACKS];
} sj_zombie_region;

#endif
