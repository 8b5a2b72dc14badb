/* Link: the conversation between the agent and its recorder (the `sojourn record` process, a worker
 * of the daemon, or a thread in direct mode). It uses a SOCK_SEQPACKET socket at `<runtime
 * directory>/control`.
 *
 * The agent connects when it is loaded and when the program loads more modules. It closes the
 * socket before it returns to the program, so no descriptor stays open in the program. A packet is
 * one sj_link_packet and `payload_bytes` bytes. If the recorder does not reply within
 * SJ_LINK_TIMEOUT_MS, the agent continues without it (counted). All integers are native-endian,
 * because both processes run on one machine.
 *
 *   agent                         recorder
 *   HELLO (arena name, pid)   ->
 *                             <-  WELCOME (session, buffer sizes, policy)   or REFUSED (reason)
 *   MODULE (path, bias, id)   ->
 *                             <-  PLAN (plan path, first function id)       or SKIP (reason)
 *   ... one MODULE per loaded module ...
 *   APPLIED (module, counts,
 *            failed functions) -> (one per PLAN)
 *   DONE                      ->
 *                             <-  DONE
 *
 * A function that appears at run time is identified by (runtime, container, token). If a file
 * describes its container (an assembly, a class file), the agent asks once, and the recorder reads
 * the file:
 *   CONTAINER (runtime, module id, path) ->
 *                             <-  CONTAINER_ADDED (first id, a bit each: wanted)  or SKIP
 *
 * Otherwise the runtime names the functions, a few at a time: METHODS. Ids are never reused: a
 * function that is freed and made again gets a new id.
 */
#ifndef SJ_AGENT_ABI_LINK_H
#define SJ_AGENT_ABI_LINK_H

#include "proto/base/ids.h"
#include "proto/block/value.h"

#include <stdint.h>

/* Environment of a launched program. The agent removes these variables, and itself from LD_PRELOAD,
 * before main. */
/* runtime directory of the session */
#define SJ_ENV_RUNTIME "SOJOURN_RUNTIME"
/* the program's own LD_PRELOAD; unset if that was unset */
#define SJ_ENV_PRELOAD "SOJOURN_PRELOAD"

enum { SJ_LINK_VERSION = 3, SJ_LINK_TIMEOUT_MS = 30000, SJ_LINK_MAX_BYTES = 64 * 1024 };

typedef enum sj_link_type {
    SJ_LINK_HELLO = 1,
    SJ_LINK_WELCOME = 2,
    SJ_LINK_REFUSED = 3,
    SJ_LINK_MODULE = 4,
    SJ_LINK_PLAN = 5,
    SJ_LINK_SKIP = 6,
    SJ_LINK_APPLIED = 7,
    SJ_LINK_DONE = 8,
    SJ_LINK_UNLOADED = 9, /* a module was unloaded: sj_link_module with its bias */
    /* sj_link_module of a known module: asks which further functions are wanted */
    SJ_LINK_TRANSITION = 10,
    /* sj_link_module of a module whose plan has no imports: asks which imports are wanted */
    SJ_LINK_IMPORTS = 11,
    /* From commands of the same user, without HELLO; the reply is DONE or REFUSED (reason). */
    SJ_LINK_MARK = 48,    /* sj_link_mark */
    SJ_LINK_TRIGGER = 49, /* sj_link_mark with `end` 0: fires the trigger "command" of that name */
    /* a policy document to apply from now on; DONE carries the result as JSON */
    SJ_LINK_POLICY = 50,
    SJ_LINK_POLICY_ASK = 51,    /* DONE carries the active policy document */
    SJ_LINK_METHODS = 64,       /* agent: methods of a dynamic runtime to register as functions */
    SJ_LINK_METHODS_ADDED = 65, /* recorder's reply; SKIP: none is wanted */
    SJ_LINK_CONTAINER = 66,     /* agent: sj_link_container */
    /* recorder's reply; SKIP: none is wanted (SJ_SKIP_MODULE), or its file cannot be read
     * (SJ_SKIP_UNDECODABLE) */
    SJ_LINK_CONTAINER_ADDED = 67,
    SJ_LINK_CLASS = 68,       /* agent: sj_link_class with a memory file of the class file */
    SJ_LINK_CLASS_ADDED = 69, /* recorder's reply; SKIP: the class stays unchanged */
    SJ_LINK_JVM_STATE = 70,   /* agent: sj_link_jvm_state, when the JVM ends; no reply */
    /* agent: sj_link_stall, followed by the watch's name, with a memory file of the report; no
     * reply */
    SJ_LINK_STALL = 90,
    SJ_LINK_REPLACED_METHODS = 72, /* agent: sj_link_replaced_methods; the reply is DONE */
    SJ_LINK_LINES = 84,            /* agent: sj_link_lines, before the program ends; no reply */
    SJ_LINK_NO_LINES = 85,         /* agent: sj_link_no_lines; no reply */
    /* agent: sj_link_code, code of known functions that is in no module, with a memory file. The
     * replies are the same as to MODULE. In APPLIED, first_function is 0, and each failure has the
     * function's id. */
    SJ_LINK_CODE = 71,
    SJ_LINK_CLASSES = 86, /* agent: sj_link_classes, loaded Java classes */
    /* recorder's reply: one byte per class, 1: its probes must change */
    SJ_LINK_CLASSES_CHOSEN = 87,
    SJ_LINK_TRACER = 88,       /* agent: sj_link_tracer */
    SJ_LINK_TRACER_FOUND = 89, /* recorder's reply: sj_link_tracer_found; SKIP: not found */
    SJ_LINK_NO_METHODS = 93    /* agent: sj_link_no_methods; no reply */
} sj_link_type;

typedef struct sj_link_packet {
    uint16_t version; /* SJ_LINK_VERSION */
    uint16_t type;    /* sj_link_type */
    uint32_t payload_bytes;
} sj_link_packet;

/* Why the agent starts a conversation. */
typedef enum sj_link_occasion {
    SJ_OCCASION_START = 0, /* program start */
    SJ_OCCASION_FORK = 1,  /* a forked child joins the session as a process */
    SJ_OCCASION_DLOPEN = 2,
    SJ_OCCASION_ATTACH = 3
} sj_link_occasion;

typedef struct sj_link_hello {
    uint32_t pid;
    uint32_t tid;
    uint32_t parent_pid;
    uint32_t occasion; /* sj_link_occasion */
    /* File in the runtime directory. The agent creates it right after WELCOME (START, FORK,
     * ATTACH), or names the existing one (DLOPEN). */
    char arena_name[64];
} sj_link_hello;

/* Bits of sj_link_welcome.runtimes. A "monitor" bit starts that monitor in the agent. */
typedef enum sj_link_runtime {
    SJ_LINK_RUNTIME_OBJC_DISPATCH = 1, /* monitor: Objective-C dispatch */
    SJ_LINK_RUNTIME_LOOPS = 2,         /* monitor: event loops */
    /* the agent sends SJ_LINK_IMPORTS: the present policy wants library calls */
    SJ_LINK_RUNTIME_LIBRARY_CALLS = 4,
    SJ_LINK_RUNTIME_MONO = 8,             /* monitor: methods that Mono compiles */
    SJ_LINK_RUNTIME_MONO_ANEW = 16,       /* monitor: also methods compiled ahead of time */
    SJ_LINK_RUNTIME_JVM = 32,             /* monitor: Java methods, by rewriting classes */
    SJ_LINK_RUNTIME_JVM_SYSTEM = 64,      /* also ask for classes of the boot loader */
    SJ_LINK_RUNTIME_ZOMBIES = 256,        /* monitor: uses of freed memory (abi/zombies.h) */
    SJ_LINK_RUNTIME_OBJC_ZOMBIES = 512,   /* monitor: messages to freed Objective-C objects */
    SJ_LINK_RUNTIME_OBJC_REPLACED = 1024, /* monitor: methods whose code the program replaces */
    SJ_LINK_RUNTIME_MONO_LINES = 1048576, /* monitor: which lines of Mono methods run */
    /* Short records may be requested. Not combined with any runtime or IMPORTS. */
    SJ_LINK_RUNTIME_COUNTING = 8388608,
    /* Java classes are sent with the names of their ancestors */
    SJ_LINK_RUNTIME_JVM_LINEAGE = 2048,
    SJ_LINK_RUNTIME_MONO_IN_PLACE = 2097152, /* methods are hooked in place, not by callbacks */
    /* Java calls are recorded by the JVM's own tracing functions, instead of rewritten classes. */
    SJ_LINK_RUNTIME_JVM_TRACER = 4194304
} sj_link_runtime;

/* Bits that say which child processes join the session. */
typedef enum sj_follow {
    SJ_FOLLOW_NONE = 0,
    SJ_FOLLOW_FORK = 1, /* forked ones, while they run the same program */
    SJ_FOLLOW_EXEC = 2  /* programs that the process or its children execute */
} sj_follow;

typedef struct sj_link_welcome {
    sj_session_id session;
    uint32_t max_threads;
    uint32_t chunks_per_thread;
    uint32_t full_policy; /* sj_full_policy */
    uint32_t wait_ms;
    uint32_t follow_children; /* sj_follow bits */
    uint32_t runtimes; /* sj_link_runtime bits: what the agent does in addition to applying plans */
} sj_link_welcome;

typedef struct sj_link_module {
    uint64_t bias;
    uint64_t text_low; /* absolute addresses of the executable segment */
    uint64_t text_high;
    uint32_t is_main; /* 1: the program itself */
    uint32_t build_id_bytes;
    uint8_t build_id[SJ_BUILD_ID_MAX_BYTES];
    uint32_t path_bytes; /* the path follows, not terminated */
    uint32_t reserved;
} sj_link_module;

typedef struct sj_link_plan {
    uint32_t first_function; /* id of function[0]; ids are dense in a session, from 1 */
    /* The path of the plan file follows, not terminated. 0: the plan itself follows (of generated
     * code, at most SJ_LINK_PLAN_BYTES). */
    uint32_t path_bytes;
} sj_link_plan;

enum { SJ_LINK_PLAN_BYTES = 16 * 1024 };

/* Methods whose code the program has replaced: `count` (at most SJ_LINK_REPLACED_METHODS_MAX) times
 * an address of code (8 bytes) and the method's name, -[Class selector], NUL-terminated. The
 * changes are made together, because two methods may exchange their code. */
typedef struct sj_link_replaced_methods {
    uint32_t count;
    uint32_t reserved;
} sj_link_replaced_methods;

enum { SJ_LINK_REPLACED_METHODS_MAX = 2 };

/* Language whose methods appear at run time. */
typedef enum sj_link_language {
    SJ_LINK_LANGUAGE_OBJC = 0,
    SJ_LINK_LANGUAGE_MONO = 1,
    SJ_LINK_LANGUAGE_JVM = 2
} sj_link_language;

enum { SJ_LINK_LANGUAGES = 3 };

typedef struct sj_link_methods {
    uint32_t count;
    /* NUL-terminated names. Objective-C: the receiver's class and its ancestors. Other languages:
     * the container of the methods. */
    uint32_t lineage_bytes;
    uint32_t names_bytes; /* `count` names; then a byte each, 1: its module is excluded */
    /* sj_link_language. OBJC: `count` is 1, and 8 bytes follow: the address of the method's
     * code. */
    uint32_t language;
} sj_link_methods;

typedef struct sj_link_methods_added {
    uint32_t first_function; /* the other ids follow it */
    uint32_t count;          /* number of bytes that follow: 1 wanted, 0 excluded by the policy */
} sj_link_methods_added;

typedef struct sj_link_container {
    uint32_t language; /* sj_link_language */
    uint32_t is_main;  /* 1: the program itself */
    uint32_t id_bytes; /* size of the module id (MVID, hash of the class file); 0: none */
    uint8_t id[SJ_BUILD_ID_MAX_BYTES];
    uint32_t path_bytes; /* the path follows, not terminated */
} sj_link_container;

enum { SJ_LINK_CONTAINER_TOKENS = 400000 };

enum { SJ_LINK_METHOD_VALUES = 8 };

/* Arguments and results of a method that are recorded. */
typedef struct sj_link_method_values {
    uint32_t token : 31;
    uint32_t in_place : 1; /* rules set its result or skip its calls, so its code is hooked */
    /* sj_value_descriptor or SJ_PLACE_CPU_ENTRY; unused elements are 0 */
    uint8_t descriptors[SJ_LINK_METHOD_VALUES];
} sj_link_method_values;

typedef struct sj_link_container_added {
    uint32_t first_function; /* id of token 1; the others follow in the order of tokens */
    /* Number of tokens, at most SJ_LINK_CONTAINER_TOKENS. (count + 7) / 8 bytes follow: a bit per
     * token, from the lowest on; 1: wanted. */
    uint32_t count;
    /* Number of sj_link_method_values after them, sorted by token; at most
     * sj_link_container_values. */
    uint32_t value_count;
    uint32_t has_lines; /* 1: the agent must report which instructions of the methods ran */
} sj_link_container_added;

/* Returns the number of sj_link_method_values that a reply can hold for a container with `count`
 * tokens (at most SJ_LINK_CONTAINER_TOKENS). */
static inline uint32_t sj_link_container_values(uint32_t count)
{
    const uint32_t used =
        sizeof(sj_link_packet) + sizeof(sj_link_container_added) + (count + 7) / 8;
    return (SJ_LINK_MAX_BYTES - used) / (uint32_t)sizeof(sj_link_method_values);
}

/* The instructions of methods that ran. `word_count` words follow: for each method its function id,
 * a number of offsets in its code, and these offsets. */
typedef struct sj_link_lines {
    uint32_t word_count; /* at most SJ_LINK_LINES_WORDS */
    uint32_t is_last;    /* 1: instructions that were not reported did not run */
} sj_link_lines;

enum { SJ_LINK_LINES_WORDS = 16000 };

/* Reason why it is not known which lines run. */
typedef enum sj_no_lines {
    SJ_NO_LINES_DEBUGGED = 1, /* the runtime's own options make it read symbol files */
    /* the program embeds the runtime, which may read symbol files later */
    SJ_NO_LINES_EMBEDDED = 2,
    SJ_NO_LINES_REFUSED = 3, /* the runtime refused */
    SJ_NO_LINES_ATTACHED = 4 /* the program was running already, so earlier lines are not known */
} sj_no_lines;

typedef struct sj_link_no_lines {
    uint32_t reason; /* sj_no_lines */
} sj_link_no_lines;

/* How a Mono runtime reports the methods that it compiles. */
typedef enum sj_mono_entry {
    SJ_MONO_ENTRY_NONE = 0,
    SJ_MONO_ENTRY_CODE_BUFFER = 1, /* before the code runs for the first time */
    SJ_MONO_ENTRY_JIT_DONE = 2,    /* when threads may already run the code */
    SJ_MONO_ENTRY_COMPILER = 3,    /* the symbol of its compiler is found by name */
    SJ_MONO_ENTRY_SLOT = 4         /* its compiler is found in code that calls it */
} sj_mono_entry;

enum { SJ_LINK_SYMBOL_BYTES = 60 };

/* Reports that the methods of the process's runtime cannot be recorded. */
typedef struct sj_link_no_methods {
    uint32_t entry; /* sj_mono_entry that exists */
    /* name of the first function that the runtime lacks, NUL-terminated */
    char missing[SJ_LINK_SYMBOL_BYTES];
} sj_link_no_methods;

/* A Java class that a JVM is about to define or redefine. The memory file that comes with the
 * packet (SCM_RIGHTS) holds its bytes from offset 0. */
typedef struct sj_link_class {
    uint64_t loader; /* 0: the loader of the program's own classes; else a number for the loader */
    uint32_t is_system;   /* 1: the boot loader or the platform loader defines the class */
    uint32_t class_bytes; /* at most SJ_LINK_CLASS_BYTES */
    /* the loader's name follows: boot, platform, app, or the name of its class */
    uint32_t loader_bytes;
    uint32_t host_bytes;     /* hidden class: the name of its host follows; else 0 */
    uint32_t least_function; /* ids below belong to an earlier recording, whose probes stay */
    uint32_t listing;        /* sj_link_class_listing */
} sj_link_class;

/* Content of the memory file. A listing is a sequence of JVM texts, NUL-terminated: the class's
 * name, then each method's name and descriptor, with a '+' (it has code) or '-' before the name. */
typedef enum sj_link_class_listing {
    SJ_CLASS_FILE = 0,
    SJ_CLASS_TRACED = 1, /* a listing: the JVM's tracing functions record its calls */
    SJ_CLASS_FIXED = 2   /* a listing: a hidden class that the JVM had already and cannot change */
} sj_link_class_listing;

enum { SJ_LINK_CLASS_BYTES = 64 * 1024 * 1024 };

/* Code that a runtime has generated: `count` sj_link_code_function sorted by address, followed by
 * the bytes of all of them. They are in the memory file that comes with the packet, or follow if
 * there is none. */
typedef struct sj_link_code {
    uint32_t count;
    uint32_t file_bytes; /* size of the array and the bytes; at most SJ_LINK_CODE_BYTES */
    uint32_t skip;       /* sj_skip; not NONE: why the agent cannot hook them; the reply is SKIP */
    uint32_t reserved;
} sj_link_code;

enum { SJ_LINK_CODE_BYTES = 256 * 1024 * 1024 };

typedef struct sj_link_code_function {
    uint64_t address;
    uint32_t bytes;
    uint32_t function; /* id in the session */
} sj_link_code_function;

typedef struct sj_link_class_added {
    uint32_t first_function; /* id of the class's first method; the others follow */
    uint32_t count;          /* number of methods */
    uint32_t rewritten;      /* number of methods that have probes */
    /* Size of the rewritten class, in the same memory file from offset 0. Traced class: a byte per
     * method, 1: wanted. */
    uint32_t class_bytes;
    uint32_t selection; /* an sj_class_selection, which identifies the wanted methods */
} sj_link_class_added;

/* State of the probes of a class. */
typedef enum sj_class_selection {
    SJ_CLASS_UNASKED = 0, /* the recorder has not seen the class */
    SJ_CLASS_NOTHING = 1, /* no method of it is wanted */
    SJ_CLASS_SELECTED = 2 /* this or more: a number that identifies the methods with probes */
} sj_class_selection;

/* `count` sj_link_loaded_class, each followed by its names. */
typedef struct sj_link_classes {
    uint32_t count; /* at most SJ_LINK_CLASSES_MAX */
    uint32_t reserved;
} sj_link_classes;

enum {
    SJ_LINK_CLASSES_MAX = 256,
    SJ_LINK_CLASS_NAME_BYTES = 16 * 1024,
    SJ_LINK_LOADER_BYTES = 256,
    SJ_LINK_LINEAGE_BYTES = 4096
};

typedef struct sj_link_loaded_class {
    uint64_t loader;       /* as in sj_link_class */
    uint32_t is_system;    /* as in sj_link_class */
    uint32_t selection;    /* sj_class_selection of the probes that it has */
    uint32_t name_bytes;   /* bytes of its name in internal form: java/lang/String */
    uint32_t loader_bytes; /* bytes of the loader's name, after the name */
    /* Bytes of its ancestors' names, NUL-terminated, after the loader's name; only with
     * SJ_LINK_RUNTIME_JVM_LINEAGE. */
    uint32_t lineage_bytes;
    uint32_t reserved;
} sj_link_loaded_class;

/* Occasion of a report about a JVM. */
typedef enum sj_link_jvm_moment {
    SJ_JVM_ENDED = 0,
    SJ_JVM_JOINED = 1,   /* joined while it ran: its loaded classes were transformed again */
    SJ_JVM_SELECTED = 2, /* the policy has changed */
    SJ_JVM_LEFT = 3      /* no class has probes any longer */
} sj_link_jvm_moment;

/* State of a JVM's classes and probes. */
typedef struct sj_link_jvm_state {
    uint32_t moment;     /* sj_link_jvm_moment */
    uint32_t classes;    /* rewritten classes */
    uint32_t unanswered; /* unchanged classes, because the recorder did not reply */
    uint32_t leaf_stubs; /* compiled wrappers of probes that jump to leaf stubs */
    uint32_t wrappers;   /* compiled wrappers of probes that call native methods */
    uint32_t is_unknown; /* 1: the JVM's wrappers are not known */
    /* On this occasion: loaded classes that were transformed again, in batches. */
    uint32_t examined;
    uint32_t retransformed;
    uint32_t refused; /* classes that the JVM refused to change */
    uint32_t batches;
    uint32_t is_traced; /* 1: the JVM's tracing functions record calls */
    uint32_t fixed;     /* hidden classes that existed before, which cannot have probes */
    uint64_t total_ns;
    uint64_t longest_ns;    /* longest batch */
    uint64_t virtual_calls; /* calls in virtual threads so far, which are only counted */
} sj_link_jvm_state;

/* Asks for the addresses of a runtime's tracing functions in the library whose path follows. */
typedef struct sj_link_tracer {
    uint32_t language;   /* sj_link_language */
    uint32_t path_bytes; /* the path follows, not terminated */
} sj_link_tracer;

/* Addresses, as in the library's file, of the functions that the runtime calls with a thread and a
 * method at each entry and exit. */
typedef struct sj_link_tracer_found {
    uint64_t entry;
    uint64_t exit;
} sj_link_tracer_found;

/* A watched thread of the program does not respond. The report is a JSON object. */
typedef struct sj_link_stall {
    uint64_t waited_ns;
    uint32_t report_bytes;
    uint32_t name_bytes; /* 1 to SJ_LINK_MARK_NAME_BYTES; not terminated */
} sj_link_stall;

typedef struct sj_link_skip {
    uint32_t reason; /* sj_skip */
} sj_link_skip;

typedef struct sj_link_applied {
    uint64_t bias;
    uint32_t first_function;
    uint32_t hooked;
    uint32_t failed; /* number of sj_link_failure that follow, at most what fits into one packet */
    uint32_t stub_bytes;
    uint64_t cpu_ns; /* CPU time that the agent used for the module */
} sj_link_applied;

enum { SJ_LINK_MARK_NAME_BYTES = 255 };

typedef struct sj_link_mark {
    uint32_t end;        /* 0: begin, 1: end */
    uint32_t name_bytes; /* 1 to SJ_LINK_MARK_NAME_BYTES; the name follows, not terminated */
} sj_link_mark;

typedef struct sj_link_failure {
    uint32_t function; /* index in the plan; for SJ_LINK_CODE the function's id */
    uint32_t skip;     /* sj_skip */
} sj_link_failure;

#endif
