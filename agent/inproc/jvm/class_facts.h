/* Facts of a class that the JVM has loaded. */
#ifndef SJ_AGENT_INPROC_JVM_CLASS_FACTS_H
#define SJ_AGENT_INPROC_JVM_CLASS_FACTS_H

#include "agent/inproc/jvm/internal.h"

/* Names of the classes and interfaces that a class descends from. Names that do not fit are left
 * out. */
typedef struct sj_class_lineage {
    uint32_t bytes;
    char names[SJ_LINK_LINEAGE_BYTES];
} sj_class_lineage;

/* Facts of one class. */
typedef struct sj_class_facts {
    char *signature; /* For example "Ljava/lang/String;". The JVM owns the memory. */
    sj_jvm_class of;
    sj_class_lineage lineage;
} sj_class_facts;

/* Reads the name and the loader of a class, and its ancestors if the policy asks for them.
 * `*loaded` borrows from `*facts`. Returns false if the class cannot have probes. Call
 * sj_class_facts_free in any case. */
bool sj_class_facts_read(jvmtiEnv *jvmti, JNIEnv *env, jclass class, sj_class_facts *facts,
                         sj_jvm_loaded *loaded);
void sj_class_facts_free(jvmtiEnv *jvmti, sj_class_facts *facts);

/* True if a class is prepared. Other classes come to sj_jvm_on_prepare later. Waiting here for one
 * could wait for a thread that waits for us. */
bool sj_class_is_prepared(jvmtiEnv *jvmti, jclass class);

/* True if the policy chooses classes by their ancestors. */
bool sj_class_is_by_lineage(void);

#endif
