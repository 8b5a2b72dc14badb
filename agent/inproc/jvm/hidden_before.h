/* Hidden classes without probes: the JVM changes none, so that they can only be listed. */
#ifndef SJ_AGENT_INPROC_JVM_HIDDEN_BEFORE_H
#define SJ_AGENT_INPROC_JVM_HIDDEN_BEFORE_H

#include "agent/inproc/jvm/internal.h"

/* sj_hidden_before_find finds the hidden classes that the JVM has, and sj_hidden_before_add adds
 * one. Those of lambdas are none of them: their code is a method of the host, which is transformed.
 */
void sj_hidden_before_find(jvmtiEnv *jvmti, JNIEnv *env);
void sj_hidden_before_add(jvmtiEnv *jvmti, jclass class);

/* sj_hidden_before_list tells the recorder of their methods, which it lists as not recorded where
 * its policy wants them, and counts them in `figures`. In a thread that the JVM knows, in native
 * state. No exception is pending afterwards. */
void sj_hidden_before_list(jvmtiEnv *jvmti, JNIEnv *env, sj_jvm_figures *figures);

/* sj_hidden_is_lambda returns whether the class of this name is that of a lambda. */
bool sj_hidden_is_lambda(const char *name);

#endif
