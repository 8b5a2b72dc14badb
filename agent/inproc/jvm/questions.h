/* Sends questions and reports about the JVM to the recorder. All functions may block; the calling
 * thread is in native state. */
#ifndef SJ_AGENT_INPROC_JVM_QUESTIONS_H
#define SJ_AGENT_INPROC_JVM_QUESTIONS_H

#include "agent/abi/link.h"
#include "agent/inproc/jvm/stall.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A class that the JVM is defining or retransforming. All pointers are borrowed. */
typedef struct sj_jvm_class {
    /* Number of the class's loader. 0 means the boot, platform or application loader. */
    uint64_t loader;
    bool is_system; /* True if the boot loader or the platform loader defines it. */
    /* "boot", "platform", "app", or the internal name of the loader's class. It may be truncated.
     */
    char loader_name[SJ_LINK_LOADER_BYTES];
    const char *host; /* Internal name of a hidden class's host, without NUL; else NULL. */
    uint32_t host_bytes;
    sj_link_class_listing listing; /* Format of `bytes`. */
    const void *bytes;
    uint32_t size;
} sj_jvm_class;

/* The recorder's reply about a class. The content is the class file with probes. For
 * SJ_CLASS_TRACED, it is one byte per method, not 0 if its calls are recorded. */
typedef struct sj_jvm_rewritten {
    int file; /* Memory file with the content at offset 0. The caller closes it if `size` != 0. */
    uint32_t size; /* Size of the content in bytes. 0 if the class does not change: no file then. */
    uint32_t selection;      /* An sj_class_selection. */
    uint32_t first_function; /* Function id of its first method. */
    uint32_t function_count;
} sj_jvm_rewritten;

/* A loaded class. All pointers are borrowed. */
typedef struct sj_jvm_loaded {
    uint64_t loader; /* Equals `loader` of the sj_jvm_class. */
    bool is_system;
    uint32_t selection; /* An sj_class_selection: the probes that the class has. */
    const char *name;   /* Internal name, without NUL. */
    uint32_t name_bytes;
    const char *loader_name; /* Ends with a NUL. */
    const char *lineage; /* Internal names of its superclasses and interfaces, each with a NUL. */
    uint32_t lineage_bytes;
} sj_jvm_loaded;

/* Counts the changes to the classes of a running JVM. */
typedef struct sj_jvm_figures {
    uint32_t examined;
    uint32_t retransformed;
    uint32_t refused;
    uint32_t batches;
    uint32_t fixed;      /* Hidden classes without probes. */
    uint64_t total_ns;   /* Duration of all batches. */
    uint64_t longest_ns; /* Duration of the longest batch. */
} sj_jvm_figures;

/* Asks the recorder to add probes to a class. Returns false if the class is too large, or if the
 * recorder did not reply. */
bool sj_jvm_rewrite_class(const sj_jvm_class *class, sj_jvm_rewritten *rewritten);

/* Asks the recorder which classes need other probes than they have. Writes one byte per class to
 * `chosen`: 0 if the probes of the class need not change. Returns false if the recorder did not
 * reply. */
bool sj_jvm_choose_classes(const sj_jvm_loaded *classes, uint32_t count, uint8_t *chosen);

/* Asks the recorder where the tracing functions are in the JVM's library at `path`. Returns false
 * if they are not known. */
bool sj_jvm_ask_tracer(const char *path, sj_link_tracer_found *found);

/* Returns the sj_link_runtime bits of the current policy, or 0 if the recorder did not reply. */
uint32_t sj_jvm_ask_runtimes(void);

/* Reports that the JVM ends, or that a task is done. */
void sj_jvm_report(sj_link_jvm_moment moment, const sj_jvm_figures *figures);

/* Reports loaders that the garbage collector has freed together with their classes. */
void sj_jvm_report_unloaded(const uint64_t *loaders, uint32_t count);

/* Reports a watched thread that did not handle a heartbeat in time. */
void sj_jvm_report_stall(const sj_jvm_stall *stall);

#endif
