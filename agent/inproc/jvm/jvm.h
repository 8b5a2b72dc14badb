/* The JVM from inside: records Java methods by probes in their class files.
 *
 * A JVM that is about to be created gets one option more, which names this agent as its JVMTI
 * agent. The JVM shows it the bytes of each class that is defined from then on. The recorder, in
 * another process, puts probes in, and the JVM defines and verifies the result. If the recorder
 * does not reply, the class stays as it is. Probes are native methods of java.sojourn.Probe, a
 * class of the boot loader. A running JVM is joined by a thread of the agent, and its loaded
 * classes are transformed again. */
#ifndef SJ_AGENT_INPROC_JVM_JVM_H
#define SJ_AGENT_INPROC_JVM_JVM_H

#include "agent/abi/agent_state.h"
#include "agent/abi/link.h"
#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A class that is about to be defined, or redefined. Borrowed for the call. */
typedef struct sj_jvm_class {
    /* A number of the class's loader. 0: the loader of the program's own classes. */
    uint64_t loader;
    bool is_system; /* True if the boot loader or the platform loader defines it. */
    /* boot, platform, app, or the internal name of the loader's class. It may be cut. */
    char loader_name[SJ_LINK_LOADER_BYTES];
    const char *host; /* The host of a hidden class, in internal form and without NUL; else NULL. */
    uint32_t host_bytes;
    sj_link_class_listing listing; /* Format of `bytes`. */
    const void *bytes;
    uint32_t size;
} sj_jvm_class;

/* The class with probes. For a traced class: which methods are wanted, one byte each. */
typedef struct sj_jvm_rewritten {
    int file;      /* Memory file that holds the class from offset 0. The receiver closes it. */
    uint32_t size; /* In bytes. 0: the class stays as it is, and there is no file. */
    uint32_t selection;      /* An sj_class_selection. */
    uint32_t first_function; /* Function id of its first method. */
    uint32_t function_count;
} sj_jvm_rewritten;

/* A loaded class. The name is borrowed for the call and has no NUL. */
typedef struct sj_jvm_loaded {
    uint64_t loader; /* As in sj_jvm_class. */
    bool is_system;
    uint32_t selection; /* Says which probes it has (sj_class_selection). */
    const char *name;   /* In internal form. */
    uint32_t name_bytes;
    const char *loader_name; /* Ends with a NUL. */
    const char *lineage;     /* Its ancestors: names in internal form, each with its NUL. */
    uint32_t lineage_bytes;
} sj_jvm_loaded;

/* Counts the changes to the classes of a running JVM. */
typedef struct sj_jvm_figures {
    uint32_t examined;
    uint32_t retransformed;
    uint32_t refused;
    uint32_t batches;
    uint32_t fixed; /* Hidden classes without probes. */
    uint64_t total_ns;
    uint64_t longest_ns; /* Time of the longest batch. */
} sj_jvm_figures;

/* Asks the recorder to rewrite a class. The calling thread is in native state and may wait. Returns
 * false if the recorder did not reply. */
typedef bool (*sj_jvm_rewrite)(const sj_jvm_class *class, sj_jvm_rewritten *rewritten);

/* Asks the recorder which classes need other probes. Sets one byte of `chosen` for each class.
 * Otherwise as sj_jvm_rewrite. */
typedef bool (*sj_jvm_choose)(const sj_jvm_loaded *classes, uint32_t count, uint8_t *chosen);

typedef struct sj_jvm_options {
    sj_agent_state *agent_state; /* Its `jvm` and leaf stubs are written here. */
    sj_jvm_rewrite rewrite;
    /* Asks the recorder where the tracing functions of a JVM's library are. Returns false if they
     * are unknown. */
    bool (*find_tracer)(const char *path, sj_link_tracer_found *found);
    sj_jvm_choose choose;
    /* Reports that the JVM ends, or that a task is done. A thread of the JVM calls it; it may wait.
     */
    void (*report)(sj_link_jvm_moment moment, const sj_jvm_figures *figures);
    /* Reports loaders that were collected together with their classes. It may wait. */
    void (*unloaded)(const uint64_t *loaders, uint32_t count);
    /* Reports lines that ran, as words of an sj_link_lines. It may wait. */
    void (*lines)(const uint32_t *words, uint32_t count, bool is_last);
    uint32_t (*get_runtimes)(void); /* Returns sj_link_runtime bits of the present policy. */
    uint32_t runtimes;              /* The bits of the first policy. */
} sj_jvm_options;

/* Tasks in a running JVM. */
typedef enum sj_jvm_task {
    SJ_JVM_ATTACH = 0, /* Gives probes to its classes, and to those that it defines later. */
    SJ_JVM_SELECT,     /* Transforms the classes whose probes differ under another policy. */
    SJ_JVM_DETACH      /* Removes all probes and everything else that the JVM knows of us. */
} sj_jvm_task;

typedef struct sj_jvm_counters {
    uint32_t classes;    /* Rewritten classes. */
    uint32_t unanswered; /* Classes that stayed as they were because the recorder did not reply. */
    uint32_t linked_wrappers; /* Compiled wrappers of probes that jump to leaf stubs. */
    uint32_t plain_wrappers;  /* Compiled wrappers that were not as expected: these stay native
                                 methods. */
    bool is_unknown;          /* True if the JVM's wrappers are not known. */
    bool is_traced; /* True if its own tracing functions record: then its classes have no probes. */
    uint64_t virtual_calls; /* Calls in virtual threads, which are not recorded. */
} sj_jvm_counters;

/* Enables the probes and waits for a JVM. Call it before a JVM is created. One thread at a time. */
void sj_jvm_start(const sj_jvm_options *options);

/* Sets the options for a running JVM. Call it before sj_jvm_start_task. */
void sj_jvm_set_options(const sj_jvm_options *options);

/* Patches JNI_CreateJavaVM, if the process has it, so that its next call comes to us. Call it after
 * modules were loaded, under the loader's lock. */
void sj_jvm_watch_for_launch(void);

/* Starts a task in a thread of its own. The `jvm` field of the agent's state says when it is done.
 * Any thread of the JVM, in any state, may call this. If a task is running already, or if no thread
 * can be started, nothing is done. */
void sj_jvm_start_task(sj_jvm_task task);

/* Marks the JVM as gone: a forked child has none of its threads. */
void sj_jvm_after_fork(void);

/* Frees what probes used. Call it after SJ_JVM_DETACH, when no thread is in the agent or in its
 * stubs. */
void sj_jvm_deinit(void);

void sj_jvm_get_counters(sj_jvm_counters *counters);

/* Returns the first function id of this recording. Smaller ids belong to an earlier one, whose
 * hidden classes keep their probes. */
uint32_t sj_jvm_least_function(void);

#endif
