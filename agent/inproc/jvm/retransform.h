/* Transforms classes again that the JVM has loaded. Their bytes come to sj_jvm_on_class. */
#ifndef SJ_AGENT_INPROC_JVM_RETRANSFORM_H
#define SJ_AGENT_INPROC_JVM_RETRANSFORM_H

#include "agent/inproc/jvm/internal.h"

/* sj_retransform_chosen transforms the classes that the recorder chooses. With `unasked_only` it
 * asks only about classes that the recorder has not seen. sj_retransform_marked transforms the
 * classes that have probes. Both add to `*figures`. The calling thread is attached to the JVM and
 * in native state. */
void sj_retransform_chosen(jvmtiEnv *jvmti, JNIEnv *env, bool unasked_only,
                           sj_jvm_figures *figures);
void sj_retransform_marked(jvmtiEnv *jvmti, JNIEnv *env, sj_jvm_figures *figures);

/* JVMTI's ClassPrepare: the recorder chooses the class by its ancestors. */
void JNICALL sj_jvm_on_prepare(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jclass class);

#endif
