/* Retransforms loaded classes: the JVM then calls sj_jvm_on_class with their original bytes. */
#ifndef SJ_AGENT_INPROC_JVM_RETRANSFORM_H
#define SJ_AGENT_INPROC_JVM_RETRANSFORM_H

#include "agent/inproc/jvm/internal.h"

/* Asks the recorder which classes need other probes, and retransforms them. With `unasked_only`,
 * asks only about classes without a mark (class_marks.h). Adds to `*figures`. The calling thread is
 * attached to the JVM and in native state. */
void sj_retransform_chosen(jvmtiEnv *jvmti, JNIEnv *env, bool unasked_only,
                           sj_jvm_figures *figures);

/* Retransforms all classes that have probes. Adds to `*figures`. The calling thread is attached to
 * the JVM and in native state. */
void sj_retransform_marked(jvmtiEnv *jvmti, JNIEnv *env, sj_jvm_figures *figures);

/* Handles JVMTI's ClassPrepare: asks the recorder about a class, whose ancestors are known by then.
 */
void JNICALL sj_jvm_on_prepare(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jclass class);

#endif
