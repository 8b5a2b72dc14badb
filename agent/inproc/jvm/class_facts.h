/* Reads a loaded class: its name, loader and ancestors. */
#ifndef SJ_AGENT_INPROC_JVM_CLASS_FACTS_H
#define SJ_AGENT_INPROC_JVM_CLASS_FACTS_H

#include "agent/inproc/jvm/internal.h"

/* Names of the superclasses and interfaces of a class, each with a terminating zero. Names that do
 * not fit are left out. */
typedef struct sj_class_lineage {
    uint32_t bytes; /* Used bytes of `names`. */
    char names[SJ_LINK_LINEAGE_BYTES];
} sj_class_lineage;

typedef struct sj_class_facts {
    char *signature;     /* For example "Ljava/lang/String;". The JVM allocated it. */
    sj_jvm_class origin; /* Only `loader`, `is_system` and `loader_name` are set. */
    sj_class_lineage lineage;
} sj_class_facts;

/* Reads the name and the loader of a class, and its ancestors if the policy asks for them.
 * `*loaded` borrows from `*facts`. Returns false if the class cannot have probes, or if the
 * recorder is not asked about it. The recorder is not asked about a class that is not prepared if
 * the policy asks for ancestors. Call sj_class_facts_free even if this returns false. */
bool sj_class_facts_read(jvmtiEnv *jvmti, JNIEnv *env, jclass class, sj_class_facts *facts,
                         sj_jvm_loaded *loaded);
void sj_class_facts_free(jvmtiEnv *jvmti, sj_class_facts *facts);

/* True if a class is prepared (JVM specification, 5.4.2). Does not wait until the class is
 * prepared, because the thread that prepares it may wait for the calling thread. The JVM reports
 * that class to sj_jvm_on_prepare later. */
bool sj_class_is_prepared(jvmtiEnv *jvmti, jclass class);

/* True if the policy chooses classes by their ancestors. */
bool sj_class_is_by_lineage(void);

#endif
