/* The JVM from inside: Java methods, recorded by probes in their class files.
 *
 * A JVM that is about to be made gets one option more: this agent as its JVMTI agent. Of each class
 * that is defined from then on the JVM shows the bytes; the recorder, which is outside, puts the
 * probes in, and the JVM defines and verifies what it answers. Without an answer the class stays as
 * it is. The probes are native methods of java.sojourn.Probe, a class of the boot loader. A JVM
 * that runs already is joined by a thread of the agent's, and has its loaded classes transformed
 * again.
 */
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
    uint64_t loader; /* 0: that of the program's own classes; else a number of it */
    bool is_system;  /* the boot loader or the platform loader defines it */
    char loader_name[SJ_LINK_LOADER_BYTES]; /* boot, platform, app or its class in internal form;
                                               cut */
    const char *host; /* of a hidden class: the class that stands for it, in internal form, not
                         terminated; else NULL */
    uint32_t host_bytes;
    sj_link_class_listing listing; /* what `bytes` are */
    const void *bytes;
    uint32_t size;
} sj_jvm_class;

/* The class with probes; of a traced one, which methods are wanted, a byte each. */
typedef struct sj_jvm_rewritten {
    int file;                /* memory file with it from offset 0 on; the receiver closes it */
    uint32_t size;           /* bytes; 0: the class stays as it is, and there is no file */
    uint32_t selection;      /* sj_class_selection */
    uint32_t first_function; /* of its methods */
    uint32_t function_count;
} sj_jvm_rewritten;

/* A class that is loaded. The name is borrowed for the call, and not terminated. */
typedef struct sj_jvm_loaded {
    uint64_t loader; /* as in sj_jvm_class */
    bool is_system;
    uint32_t selection; /* sj_class_selection of the probes that it has */
    const char *name;   /* internal form */
    uint32_t name_bytes;
    const char *loader_name; /* terminated */
    const char *lineage;     /* what it descends from: names in internal form, each terminated */
    uint32_t lineage_bytes;
} sj_jvm_loaded;

/* What changed in the classes of a JVM that runs. */
typedef struct sj_jvm_figures {
    uint32_t looked_at;
    uint32_t retransformed;
    uint32_t refused;
    uint32_t batches;
    uint32_t fixed; /* hidden classes that have no probes, and get none */
    uint64_t total_ns;
    uint64_t longest_ns; /* of a batch */
} sj_jvm_figures;

/* Asks the recorder. Called in the JVM's threads, which are in native state: they may wait. False:
 * nobody answered. */
typedef bool (*sj_jvm_rewrite)(const sj_jvm_class *class, sj_jvm_rewritten *rewritten);

/* Asks it whose probes are to be others: `chosen` has a byte for each class. Called as that. */
typedef bool (*sj_jvm_choose)(const sj_jvm_loaded *classes, uint32_t count, uint8_t *chosen);

typedef struct sj_jvm_options {
    sj_agent_state *agent_state; /* where `jvm` and the leaf stubs are noted */
    sj_jvm_rewrite rewrite;
    /* Asks it where the tracing functions of a JVM's library are; false: nowhere. */
    bool (*find_tracer)(const char *path, sj_link_tracer_found *found);
    sj_jvm_choose choose;
    /* The JVM ends, or a task is done; called in one of its threads, like `rewrite`. */
    void (*report)(sj_link_jvm_moment moment, const sj_jvm_figures *figures);
    /* Loaders that are gone, with their classes; called as that. */
    void (*unloaded)(const uint64_t *loaders, uint32_t count);
    /* Lines that ran, as the words of an sj_link_lines; called as that. */
    void (*lines)(const uint32_t *words, uint32_t count, bool is_last);
    uint32_t (*get_runtimes)(void); /* sj_link_runtime bits, as the policy is now */
    uint32_t runtimes;              /* the same, at the beginning */
} sj_jvm_options;

/* What is done in a JVM that runs. */
typedef enum sj_jvm_task {
    SJ_JVM_JOIN = 0, /* the classes that it has get probes, and those that it defines */
    SJ_JVM_SELECT,   /* another policy: the classes whose probes are others */
    SJ_JVM_LEAVE     /* its classes have no probes any more, and it knows nothing of us */
} sj_jvm_task;

typedef struct sj_jvm_counters {
    uint32_t classes;       /* rewritten */
    uint32_t unanswered;    /* the recorder did not answer: unchanged */
    uint32_t led;           /* compiled wrappers of probes that were led to leaf stubs */
    uint32_t unled;         /* those that were not as expected: native methods */
    bool is_unknown;        /* the JVM is not one whose wrappers are known */
    bool is_traced;         /* by its own tracing functions: `classes` have none */
    uint64_t virtual_calls; /* in virtual threads: not recorded */
} sj_jvm_counters;

/* sj_jvm_start lets the probes record and watches for a JVM. Before a JVM is made. One thread at a
 * time. */
void sj_jvm_start(const sj_jvm_options *options);

/* sj_jvm_use sets what is used in a JVM that runs. Before sj_jvm_begin. */
void sj_jvm_use(const sj_jvm_options *options);

/* sj_jvm_watch_for_launch makes the next call of JNI_CreateJavaVM come to us, if the process has
 * that function. Called after modules were loaded; under the loader's lock. */
void sj_jvm_watch_for_launch(void);

/* sj_jvm_begin begins a task in a thread of its own, which the process has as long as it takes:
 * `jvm` of the agent's state says when it is done. The calling thread may be any of the JVM's, in
 * any state. No task is under way. What cannot be done is left. */
void sj_jvm_begin(sj_jvm_task task);

/* sj_jvm_after_fork: a forked child has none of the JVM's threads. */
void sj_jvm_after_fork(void);

/* sj_jvm_forget frees what probes used. After SJ_JVM_LEAVE, when no thread is in the agent or in
 * its stubs. */
void sj_jvm_forget(void);

void sj_jvm_get_counters(sj_jvm_counters *counters);

/* sj_jvm_least_function: functions below are those of an earlier recording, whose hidden classes
 * have probes for good. */
uint32_t sj_jvm_least_function(void);

#endif
