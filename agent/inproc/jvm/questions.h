/* Questions and reports of the JVM's monitor to the recorder. A thread in native state calls them;
 * they may wait. */
#ifndef SJ_AGENT_INPROC_JVM_QUESTIONS_H
#define SJ_AGENT_INPROC_JVM_QUESTIONS_H

#include "agent/abi/link.h"
#include "agent/inproc/jvm/stall.h"

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

/* Asks the recorder to rewrite a class. Returns false if the recorder did not reply. */
bool sj_jvm_rewrite_class(const sj_jvm_class *class, sj_jvm_rewritten *rewritten);

/* Asks the recorder which classes need other probes. Sets one byte of `chosen` for each class.
 * Returns false if the recorder did not reply. */
bool sj_jvm_choose_classes(const sj_jvm_loaded *classes, uint32_t count, uint8_t *chosen);

/* Asks the recorder where the tracing functions of a JVM's library are. Returns false if they are
 * unknown. */
bool sj_jvm_ask_tracer(const char *path, sj_link_tracer_found *found);

/* Returns sj_link_runtime bits of the present policy; 0 if the recorder did not reply. */
uint32_t sj_jvm_ask_runtimes(void);

/* Reports that the JVM ends, or that a task is done. */
void sj_jvm_report(sj_link_jvm_moment moment, const sj_jvm_figures *figures);

/* Reports loaders that were collected together with their classes. */
void sj_jvm_report_unloaded(const uint64_t *loaders, uint32_t count);

/* Reports a thread of the program that does not handle a heartbeat in time. */
void sj_jvm_report_stall(const sj_jvm_stall *stall);

#endif
