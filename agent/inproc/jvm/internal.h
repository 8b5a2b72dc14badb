/* What the files of the JVM's room share. */
#ifndef SJ_AGENT_INPROC_JVM_INTERNAL_H
#define SJ_AGENT_INPROC_JVM_INTERNAL_H

#include "agent/inproc/jvm/jvm.h"

#include "agent/abi/record.h"

#include <jvmti.h>
#include <stdatomic.h>

#define SJ_JVM_PROBE_CLASS "io/sojourn/Probe"

typedef struct sj_jvm_state {
    sj_jvm_options options;
    jvmtiEnv *jvmti;            /* NULL: no JVM has loaded us */
    jobject app_loader;         /* global references; NULL: unknown */
    jobject platform_loader;    /* likewise */
    _Atomic uint32_t is_loaded; /* 1: a JVM has called us */
    _Atomic uint32_t enabled;   /* 1: classes are asked for */
    _Atomic uint32_t classes;
    _Atomic uint32_t unanswered;
    _Atomic uint32_t led;
    _Atomic uint32_t unled;
    _Atomic uint32_t is_unknown;
} sj_jvm_state;

extern sj_jvm_state sj_jvm __attribute__((visibility("hidden")));

/* sj_jvm_on_class is JVMTI's ClassFileLoadHook. */
void JNICALL sj_jvm_on_class(jvmtiEnv *jvmti, JNIEnv *env, jclass redefined, jobject loader,
                             const char *name, jobject domain, jint size,
                             const unsigned char *bytes, jint *new_size, unsigned char **new_bytes);

/* sj_jvm_define_probes defines the class of the probes and its native methods, and returns a local
 * reference. NULL: the JVM refused. No exception is pending afterwards. */
jclass sj_jvm_define_probes(JNIEnv *env);

/* sj_jvm_find_loaders makes references to the loaders of the program's and of the platform's
 * classes. No exception is pending afterwards. */
void sj_jvm_find_loaders(JNIEnv *env);

extern const uint8_t sj_jvm_probe_class[];
extern const uint32_t sj_jvm_probe_class_bytes;

#endif
