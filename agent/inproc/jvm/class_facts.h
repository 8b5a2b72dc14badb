/* What is read of a class that a JVM has loaded. */
#ifndef SJ_AGENT_INPROC_JVM_CLASS_FACTS_H
#define SJ_AGENT_INPROC_JVM_CLASS_FACTS_H

#include "agent/inproc/jvm/internal.h"

/* Where the names of what a class descends from are gathered; what has no room is left out. */
typedef struct sj_class_lineage {
    uint32_t bytes;
    char names[SJ_LINK_LINEAGE_BYTES];
} sj_class_lineage;

/* What is read of one class. */
typedef struct sj_class_facts {
    char *signature; /* Ljava/lang/String; - the JVM's memory */
    sj_jvm_class of;
    sj_class_lineage lineage;
} sj_class_facts;

/* sj_class_facts_read reads what a class is called, who has loaded it and, where that is asked for,
 * what it descends from. `loaded` borrows from the facts. False: it is none that has probes.
 * Release with sj_class_facts_free in any case. */
bool sj_class_facts_read(jvmtiEnv *jvmti, JNIEnv *env, jclass class, sj_class_facts *facts,
                         sj_jvm_loaded *loaded);
void sj_class_facts_free(jvmtiEnv *jvmti, sj_class_facts *facts);

/* sj_class_is_prepared returns whether a class is ready. One that is not yet comes to
 * sj_jvm_on_prepare; to wait for it elsewhere would be to wait for a thread that waits there. */
bool sj_class_is_prepared(jvmtiEnv *jvmti, jclass class);

/* sj_class_is_by_lineage returns whether classes are chosen by what they descend from. */
bool sj_class_is_by_lineage(void);

#endif
