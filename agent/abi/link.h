/* The link: the short conversation between the agent and its recorder (the `sojourn record`
 * process, a worker of the daemon, or a thread in direct mode), over a SOCK_SEQPACKET socket at
 * `<runtime directory>/control`.
 *
 * The agent connects when it is loaded and when the program loads further modules, and closes the
 * socket before it returns to the program: nothing stays open in the program. Every packet is one
 * sj_link_packet plus `payload_bytes` bytes. The recorder answers within SJ_LINK_TIMEOUT_MS or the
 * agent goes on without it (counted). All integers native-endian: both ends are on one machine.
 *
 *   agent                         recorder
 *   HELLO (arena name, pid)   ->
 *                             <-  WELCOME (session, ring sizes, policy)     or REFUSED (reason)
 *   MODULE (path, bias, id)   ->
 *                             <-  PLAN (plan path, first function id)       or SKIP (reason)
 *   ... one MODULE per loaded module ...
 *   APPLIED (module, counts,
 *            failed functions) -> (one per PLAN)
 *   DONE                      ->
 *                             <-  DONE
 *
 * Functions that come at run time are named by (runtime, container, token). Where a file describes
 * the container (an assembly, a class file), the agent asks once, and the companion reads the file:
 *   CONTAINER (runtime, module id, path) ->
 *                             <-  CONTAINER_ADDED (first id, a bit each: wanted)  or SKIP
 * What no file describes is named by the runtime, a few at a time: METHODS. Ids are never given
 * again: what is freed and made anew is named anew.
 */
#ifndef SJ_AGENT_ABI_LINK_H
#define SJ_AGENT_ABI_LINK_H

#include "proto/base/ids.h"
#include "proto/block/value.h"

#include <stdint.h>

/* Environment of a launched app; the agent removes them (and itself from LD_PRELOAD) before main.
 */
#define SJ_ENV_RUNTIME "SOJOURN_RUNTIME" /* runtime directory of the session */
#define SJ_ENV_PRELOAD                                                                             \
    "SOJOURN_PRELOAD" /* LD_PRELOAD as it was before; unset when it was unset                      \
                       */

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
    SJ_LINK_UNLOADED = 9,    /* a module was unloaded: sj_link_module with its bias */
    SJ_LINK_TRANSITION = 10, /* as MODULE, of a known one: which further functions are wanted? */
    SJ_LINK_IMPORTS =
        11, /* as MODULE, of one whose plan has no imports: which imports are wanted? */
    /* From commands of the same user, without HELLO; answered by DONE or REFUSED (reason) */
    SJ_LINK_MARK = 48,       /* sj_link_mark */
    SJ_LINK_TRIGGER = 49,    /* sj_link_mark, `end` 0: a trigger "command" of that name */
    SJ_LINK_POLICY = 50,     /* a policy document to apply from now on; DONE carries the outcome as
                                JSON */
    SJ_LINK_POLICY_ASK = 51, /* DONE carries the policy document in force */
    SJ_LINK_METHODS = 64,    /* agent: methods of a dynamic runtime to register as functions */
    SJ_LINK_METHODS_ADDED = 65,   /* recorder's answer; SKIP: none of them */
    SJ_LINK_CONTAINER = 66,       /* agent: sj_link_container */
    SJ_LINK_CONTAINER_ADDED = 67, /* recorder's answer; SKIP: nothing of it is wanted
                                     (SJ_SKIP_MODULE), or its file cannot be read
                                     (SJ_SKIP_UNDECODABLE) */
    SJ_LINK_CLASS = 68, /* agent: sj_link_class; a memory file with the class file comes along */
    SJ_LINK_CLASS_ADDED = 69, /* recorder's answer; SKIP: the class stays as it is */
    SJ_LINK_JVM_STATE = 70,   /* agent: sj_link_jvm_state, when the JVM ends; no answer */
    SJ_LINK_STALL = 90,       /* agent: sj_link_stall, then the watch's name; a memory file with the
                                 report comes along; no answer */
    SJ_LINK_PUT_IN = 72,      /* agent: sj_link_put_in; answered by DONE */
    SJ_LINK_LINES = 84,       /* agent: sj_link_lines, before the program ends; no answer */
    SJ_LINK_NO_LINES = 85,    /* agent: sj_link_no_lines; no answer */
    SJ_LINK_CODE = 71,    /* agent: sj_link_code, code of known functions that no module holds; a
                             memory file with it comes along. Answered as MODULE; in APPLIED,
                             first_function is 0 and each failure names the function by its id */
    SJ_LINK_CLASSES = 86, /* agent: sj_link_classes, loaded Java classes */
    SJ_LINK_CLASSES_CHOSEN = 87, /* recorder's answer: a byte each, 1: it is to have other probes */
    SJ_LINK_TRACER = 88,         /* agent: sj_link_tracer */
    SJ_LINK_TRACER_FOUND = 89,   /* recorder's answer: sj_link_tracer_found; SKIP: there is none */
    SJ_LINK_NO_METHODS = 93      /* agent: sj_link_no_methods; no answer */
} sj_link_type;

typedef struct sj_link_packet {
    uint16_t version; /* SJ_LINK_VERSION */
    uint16_t type;    /* sj_link_type */
    uint32_t payload_bytes;
} sj_link_packet;

/* Why the agent opens a conversation. */
typedef enum sj_link_occasion {
    SJ_OCCASION_START = 0, /* program start */
    SJ_OCCASION_FORK = 1,  /* a forked child joins as a process of the session */
    SJ_OCCASION_DLOPEN = 2,
    SJ_OCCASION_ATTACH = 3
} sj_link_occasion;

typedef struct sj_link_hello {
    uint32_t pid;
    uint32_t tid;
    uint32_t parent_pid;
    uint32_t occasion;   /* sj_link_occasion */
    char arena_name[64]; /* file in the runtime directory; START, FORK, ATTACH: the agent creates it
                            right after WELCOME; DLOPEN: the one in use */
} sj_link_hello;

/* Bits of sj_link_welcome.runtimes. */
typedef enum sj_link_runtime {
    SJ_LINK_RUNTIME_OBJC_DISPATCH = 1,    /* monitor: Objective-C dispatch */
    SJ_LINK_RUNTIME_LOOPS = 2,            /* monitor: event loops */
    SJ_LINK_RUNTIME_LIBRARY_CALLS = 4,    /* ask for IMPORTS: as the policy is at this moment */
    SJ_LINK_RUNTIME_MONO = 8,             /* monitor: methods that Mono compiles */
    SJ_LINK_RUNTIME_MONO_ANEW = 16,       /* monitor: also those compiled ahead of time */
    SJ_LINK_RUNTIME_JVM = 32,             /* monitor: Java methods, by rewriting classes */
    SJ_LINK_RUNTIME_JVM_SYSTEM = 64,      /* classes of the boot loader are asked for, too */
    SJ_LINK_RUNTIME_ZOMBIES = 256,        /* monitor: uses of freed memory (abi/zombies.h) */
    SJ_LINK_RUNTIME_OBJC_ZOMBIES = 512,   /* monitor: messages to freed Objective-C objects */
    SJ_LINK_RUNTIME_OBJC_PUT_IN = 1024,   /* monitor: methods whose code the program puts in */
    SJ_LINK_RUNTIME_MONO_LINES = 1048576, /* monitor: which lines of Mono methods run */
    SJ_LINK_RUNTIME_COUNTING = 8388608, /* short records may be asked for: with none of the runtimes
                                           and no IMPORTS */
    SJ_LINK_RUNTIME_JVM_LINEAGE = 2048, /* Java classes are asked about by what they descend from */
    SJ_LINK_RUNTIME_MONO_IN_PLACE = 2097152, /* methods are hooked in place, not by callbacks */
    SJ_LINK_RUNTIME_JVM_TRACER = 4194304     /* by the JVM's own tracing functions, not by classes
                                                that are rewritten */
} sj_link_runtime;

/* Which children join the session. */
typedef enum sj_follow {
    SJ_FOLLOW_NONE = 0,
    SJ_FOLLOW_FORK = 1, /* forked ones, as long as they run the same program */
    SJ_FOLLOW_EXEC = 2  /* programs that the process or its children run */
} sj_follow;

typedef struct sj_link_welcome {
    sj_session_id session;
    uint32_t max_threads;
    uint32_t chunks_per_thread;
    uint32_t full_policy; /* sj_full_policy */
    uint32_t wait_ms;
    uint32_t follow_children; /* sj_follow bits */
    uint32_t runtimes;        /* sj_link_runtime bits: what the agent does besides applying plans */
} sj_link_welcome;

typedef struct sj_link_module {
    uint64_t bias;
    uint64_t text_low; /* absolute addresses of the executable segment */
    uint64_t text_high;
    uint32_t is_main; /* 1 for the program itself */
    uint32_t build_id_bytes;
    uint8_t build_id[SJ_BUILD_ID_MAX_BYTES];
    uint32_t path_bytes; /* path follows, not terminated */
    uint32_t reserved;
} sj_link_module;

typedef struct sj_link_plan {
    uint32_t first_function; /* id of function[0]: ids are dense per session, from 1 */
    uint32_t path_bytes;     /* path of the plan file follows, not terminated; 0: the plan itself,
                                of generated code, of at most SJ_LINK_PLAN_BYTES */
} sj_link_plan;

enum { SJ_LINK_PLAN_BYTES = 16 * 1024 };

/* Methods that have other code from now on: `count` (at most SJ_LINK_PUT_IN_MAX) times an address
 * of code (8 bytes) and the method's name, NUL-terminated: -[Class selector]. The changes are made
 * together: two methods may exchange their code. */
typedef struct sj_link_put_in {
    uint32_t count;
    uint32_t reserved;
} sj_link_put_in;

enum { SJ_LINK_PUT_IN_MAX = 2 };

/* Whose methods come at run time. */
typedef enum sj_link_language {
    SJ_LINK_LANGUAGE_OBJC = 0,
    SJ_LINK_LANGUAGE_MONO = 1,
    SJ_LINK_LANGUAGE_JVM = 2
} sj_link_language;

enum { SJ_LINK_LANGUAGES = 3 };

typedef struct sj_link_methods {
    uint32_t count;
    uint32_t lineage_bytes; /* NUL-terminated names: the receivers' class, its ancestors; the
                               container of other languages' methods */
    uint32_t names_bytes;   /* `count` of those; then a byte each: 1 its module is excluded */
    uint32_t language;      /* sj_link_language; OBJC: `count` is 1, and 8 bytes follow: the address
                               of the method's code */
} sj_link_methods;

typedef struct sj_link_methods_added {
    uint32_t first_function; /* the others follow it */
    uint32_t count;          /* that many bytes follow: 1 wanted, 0 left out by the selection */
} sj_link_methods_added;

typedef struct sj_link_container {
    uint32_t language; /* sj_link_language */
    uint32_t is_main;  /* 1 for the program itself */
    uint32_t id_bytes; /* of the module id (MVID, hash of the class file); 0: it has none */
    uint8_t id[SJ_BUILD_ID_MAX_BYTES];
    uint32_t path_bytes; /* path follows, not terminated */
} sj_link_container;

enum { SJ_LINK_CONTAINER_TOKENS = 400000 };

enum { SJ_LINK_METHOD_VALUES = 8 };

/* Which arguments and results of a method are recorded. */
typedef struct sj_link_method_values {
    uint32_t token : 31;
    uint32_t in_place : 1; /* rules set its result or skip its calls, so that its code is hooked */
    uint8_t descriptors[SJ_LINK_METHOD_VALUES]; /* or SJ_PLACE_CPU_ENTRY; the rest 0 */
} sj_link_method_values;

typedef struct sj_link_container_added {
    uint32_t first_function; /* that of token 1; the others follow it in the order of tokens */
    uint32_t count;          /* of tokens, at most SJ_LINK_CONTAINER_TOKENS; (count + 7) / 8 bytes
                                follow, a bit each from the lowest on: 1 wanted */
    uint32_t value_count;    /* sj_link_method_values behind those, by rising token, at most
                                sj_link_container_values of them */
    uint32_t has_lines;      /* 1: it is to report which instructions of its methods ran */
} sj_link_container_added;

/* sj_link_container_values returns for how many methods of a container with `count` tokens (at most
 * SJ_LINK_CONTAINER_TOKENS) an answer has room to say which values are recorded. */
static inline uint32_t sj_link_container_values(uint32_t count)
{
    const uint32_t used =
        sizeof(sj_link_packet) + sizeof(sj_link_container_added) + (count + 7) / 8;
    return (SJ_LINK_MAX_BYTES - used) / (uint32_t)sizeof(sj_link_method_values);
}

/* Which instructions of methods ran. `word_count` words follow: a function, how many offsets in its
 * code, and these, each. */
typedef struct sj_link_lines {
    uint32_t word_count; /* at most SJ_LINK_LINES_WORDS */
    uint32_t is_last;    /* 1: what was not reported did not run */
} sj_link_lines;

enum { SJ_LINK_LINES_WORDS = 16000 };

/* Why it is not known which lines run. */
typedef enum sj_no_lines {
    SJ_NO_LINES_DEBUGGED = 1, /* the runtime reads symbol files by its own options */
    SJ_NO_LINES_EMBEDDED = 2, /* it is a program's own runtime, which may do that later */
    SJ_NO_LINES_REFUSED = 3,  /* the runtime refused */
    SJ_NO_LINES_ATTACHED = 4  /* it is a running program, whose code does not count */
} sj_no_lines;

typedef struct sj_link_no_lines {
    uint32_t reason; /* sj_no_lines */
} sj_link_no_lines;

/* How a Mono runtime tells of the methods that it compiles. */
typedef enum sj_mono_entry {
    SJ_MONO_ENTRY_NONE = 0,
    SJ_MONO_ENTRY_CODE_BUFFER = 1, /* in front of the code's first run */
    SJ_MONO_ENTRY_JIT_DONE = 2,    /* when threads may run it already */
    SJ_MONO_ENTRY_COMPILER = 3,    /* its compiler can be found by name */
    SJ_MONO_ENTRY_SLOT = 4         /* its compiler can be found in code that calls it */
} sj_mono_entry;

enum { SJ_LINK_SYMBOL_BYTES = 60 };

/* The methods of the process's runtime are not recorded. */
typedef struct sj_link_no_methods {
    uint32_t entry;                     /* sj_mono_entry: what there is */
    char missing[SJ_LINK_SYMBOL_BYTES]; /* the first function that it lacks, NUL-terminated */
} sj_link_no_methods;

/* A Java class that a JVM is about to define or to redefine. Its bytes are in the memory file that
 * comes with the packet (SCM_RIGHTS), from offset 0 on. */
typedef struct sj_link_class {
    uint64_t loader;         /* 0: the loader of the program's own classes; else a number of it */
    uint32_t is_system;      /* 1: the boot loader or the platform loader defines it */
    uint32_t class_bytes;    /* at most SJ_LINK_CLASS_BYTES */
    uint32_t loader_bytes;   /* the loader's name follows: boot, platform, app, else its class's */
    uint32_t host_bytes;     /* of a hidden class: then the name of its host; else 0 */
    uint32_t least_function; /* ids below are those of an earlier recording, whose probes stay */
    uint32_t listing;        /* sj_link_class_listing */
} sj_link_class;

/* What the memory file holds. A listing is texts of the JVM, NUL-terminated: the class's name, then
 * of each method its name and its descriptor, with '+' (code) or '-' in front. */
typedef enum sj_link_class_listing {
    SJ_CLASS_FILE = 0,
    SJ_CLASS_TRACED = 1, /* a listing: its calls are recorded by the JVM's tracing functions */
    SJ_CLASS_FIXED = 2   /* a listing: a hidden class that the JVM has, and changes for nobody */
} sj_link_class_listing;

enum { SJ_LINK_CLASS_BYTES = 64 * 1024 * 1024 };

/* Code that a runtime has generated: `count` sj_link_code_function, by rising address, and the
 * bytes of all of them behind those. They lie in the memory file that comes with the packet, or, if
 * there is none, follow. */
typedef struct sj_link_code {
    uint32_t count;
    uint32_t file_bytes; /* of all that; at most SJ_LINK_CODE_BYTES */
    uint32_t skip;       /* sj_skip; not NONE: why the agent cannot hook them. Answered by SKIP */
    uint32_t reserved;
} sj_link_code;

enum { SJ_LINK_CODE_BYTES = 256 * 1024 * 1024 };

typedef struct sj_link_code_function {
    uint64_t address;
    uint32_t bytes;
    uint32_t function; /* id in the session */
} sj_link_code_function;

typedef struct sj_link_class_added {
    uint32_t first_function; /* of the class's first method; the others follow it */
    uint32_t count;          /* of methods */
    uint32_t rewritten;      /* methods that have probes */
    uint32_t class_bytes;    /* of the rewritten class, in the same memory file from offset 0 on; of
                                a traced one a byte for each method: 1 wanted */
    uint32_t selection; /* stands for the methods that are wanted, as in sj_link_loaded_class */
} sj_link_class_added;

/* What is known of the probes of a class. */
typedef enum sj_class_selection {
    SJ_CLASS_UNASKED = 0, /* the recorder has not seen the class */
    SJ_CLASS_NOTHING = 1, /* nothing in it is wanted */
    SJ_CLASS_SELECTED = 2 /* this and more: a number that stands for the methods with probes */
} sj_class_selection;

/* `count` sj_link_loaded_class, each followed by its name. */
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
    uint64_t loader;        /* as in sj_link_class */
    uint32_t is_system;     /* likewise */
    uint32_t selection;     /* sj_class_selection of the probes that it has */
    uint32_t name_bytes;    /* in internal form: java/lang/String */
    uint32_t loader_bytes;  /* the loader's name, behind that */
    uint32_t lineage_bytes; /* the names of what it descends from, NUL-terminated, behind that; with
                               SJ_LINK_RUNTIME_JVM_LINEAGE only */
    uint32_t reserved;
} sj_link_loaded_class;

/* When the state of a JVM is reported. */
typedef enum sj_link_jvm_moment {
    SJ_JVM_ENDED = 0,
    SJ_JVM_JOINED = 1,   /* while it ran: its loaded classes were transformed again */
    SJ_JVM_SELECTED = 2, /* a policy has changed */
    SJ_JVM_LEFT = 3      /* its classes have no probes any more */
} sj_link_jvm_moment;

/* What became of a JVM's classes and probes. */
typedef struct sj_link_jvm_state {
    uint32_t moment;     /* sj_link_jvm_moment */
    uint32_t classes;    /* rewritten */
    uint32_t unanswered; /* unchanged: the recorder did not answer */
    uint32_t leaf_stubs; /* compiled wrappers of probes that are led to leaf stubs */
    uint32_t wrappers;   /* compiled wrappers of probes that are native methods */
    uint32_t is_unknown; /* 1: the JVM is not one whose wrappers are known */
    /* Of this moment: loaded classes that were transformed again, in batches. */
    uint32_t looked_at;
    uint32_t retransformed;
    uint32_t refused; /* by the JVM: they stay as they were */
    uint32_t batches;
    uint32_t is_traced; /* 1: calls are recorded by the JVM's tracing functions */
    uint32_t fixed;     /* hidden classes that it had, without probes for good */
    uint64_t total_ns;
    uint64_t longest_ns;    /* of a batch */
    uint64_t virtual_calls; /* in virtual threads, so far: counted only */
} sj_link_jvm_state;

/* Where are a runtime's own tracing functions, in the library that follows? */
typedef struct sj_link_tracer {
    uint32_t language;   /* sj_link_language */
    uint32_t path_bytes; /* path follows, not terminated */
} sj_link_tracer;

/* Addresses as the library's file has them: functions of a thread and a method. */
typedef struct sj_link_tracer_found {
    uint64_t entry;
    uint64_t exit;
} sj_link_tracer_found;

/* A watched thread of the program does not answer. The report is a JSON object. */
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
    uint32_t failed; /* that many sj_link_failure follow, at most what fits one packet */
    uint32_t stub_bytes;
    uint64_t cpu_ns; /* CPU time that the agent spent on the module */
} sj_link_applied;

enum { SJ_LINK_MARK_NAME_BYTES = 255 };

typedef struct sj_link_mark {
    uint32_t end;        /* 0: begin, 1: end */
    uint32_t name_bytes; /* 1 to SJ_LINK_MARK_NAME_BYTES; the name follows, not terminated */
} sj_link_mark;

typedef struct sj_link_failure {
    uint32_t function; /* index in the plan */
    uint32_t skip;     /* sj_skip */
} sj_link_failure;

#endif
