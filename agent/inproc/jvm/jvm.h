/* The JVM from inside: Java methods, recorded by probes in their class files.
 *
 * A JVM that is about to be made gets one option more: this agent as its JVMTI agent. Of each class
 * that is defined from then on the JVM shows the bytes; the recorder, which is outside, puts the
 * probes in, and the JVM defines and verifies what it answers. Without an answer the class stays as
 * it is. The probes are native methods of io.sojourn.Probe, a class of the boot loader. */
#ifndef SJ_AGENT_INPROC_JVM_JVM_H
#define SJ_AGENT_INPROC_JVM_JVM_H

#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A class that is about to be defined, or redefined. Borrowed for the call. */
typedef struct sj_jvm_class {
    uint64_t loader; /* 0: that of the program's own classes; else a number of it */
    bool is_system;  /* the boot loader or the platform loader defines it */
    const void *bytes;
    uint32_t size;
} sj_jvm_class;

/* The class with probes. */
typedef struct sj_jvm_rewritten {
    int file;      /* memory file that holds it from offset 0 on; the receiver closes it */
    uint32_t size; /* bytes; 0: the class stays as it is, and there is no file */
} sj_jvm_rewritten;

/* Asks the recorder. Called in the JVM's threads, which are in native state: they may wait. False:
 * nobody answered. */
typedef bool (*sj_jvm_rewrite)(const sj_jvm_class *class, sj_jvm_rewritten *rewritten);

typedef struct sj_jvm_options {
    sj_jvm_rewrite rewrite;
    void (*on_end)(void); /* the JVM ends; called in one of its threads, like `rewrite` */
    bool system_classes;  /* those of the boot loader, too */
} sj_jvm_options;

typedef struct sj_jvm_counters {
    uint32_t classes;    /* rewritten */
    uint32_t unanswered; /* the recorder did not answer: unchanged */
    uint32_t led;        /* compiled wrappers of probes that were led to leaf stubs */
    uint32_t unled;      /* those that were not as expected: native methods */
    bool is_unknown;     /* the JVM is not one whose wrappers are known */
} sj_jvm_counters;

/* sj_jvm_start lets the probes record and watches for a JVM. Before a JVM is made. One thread at a
 * time. */
void sj_jvm_start(const sj_jvm_options *options);

/* sj_jvm_watch_for_launch makes the next call of JNI_CreateJavaVM come to us, if the process has
 * that function. Called after modules were loaded; under the loader's lock. */
void sj_jvm_watch_for_launch(void);

void sj_jvm_get_counters(sj_jvm_counters *counters);

#endif
