/* Hidden classes without probes: the JVM cannot transform them, so they can only be listed. */
#ifndef SJ_AGENT_INPROC_JVM_HIDDEN_BEFORE_H
#define SJ_AGENT_INPROC_JVM_HIDDEN_BEFORE_H

#include "agent/inproc/jvm/internal.h"

/* sj_hidden_before_find finds the hidden classes that the JVM has. sj_hidden_before_add adds one.
 * Those of lambdas are left out, because their code is a method of the host, which is transformed.
 */
void sj_hidden_before_find(jvmtiEnv *jvmti, JNIEnv *env);
void sj_hidden_before_add(jvmtiEnv *jvmti, jclass class);

/* Sends their methods to the recorder, which lists them as not recorded if its policy wants them.
 * Counts the classes in `*figures`. The calling thread is attached to the JVM and in native state.
 * No exception is pending afterwards. */
void sj_hidden_before_list(jvmtiEnv *jvmti, JNIEnv *env, sj_jvm_figures *figures);

/* True if this is the name of a lambda's class. */
bool sj_hidden_is_lambda(const char *name);

#endif
