/* Classes that a JVM has loaded, transformed again: their bytes come to sj_jvm_on_class. */
#ifndef SJ_AGENT_INPROC_JVM_RETRANSFORM_H
#define SJ_AGENT_INPROC_JVM_RETRANSFORM_H

#include "agent/inproc/jvm/internal.h"

/* sj_retransform_chosen transforms the classes that the recorder chooses; with `unasked_only` it is
 * asked about those only that it has not seen. sj_retransform_marked transforms those that have
 * probes. Both add to `*figures`. In a thread that the JVM knows, in native state. */
void sj_retransform_chosen(jvmtiEnv *jvmti, JNIEnv *env, bool unasked_only,
                           sj_jvm_figures *figures);
void sj_retransform_marked(jvmtiEnv *jvmti, JNIEnv *env, sj_jvm_figures *figures);

/* sj_jvm_on_prepare is JVMTI's ClassPrepare: the class is chosen by what it descends from. */
void JNICALL sj_jvm_on_prepare(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jclass class);

#endif
