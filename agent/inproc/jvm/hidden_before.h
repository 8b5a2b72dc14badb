/* Lists hidden classes without probes. JVMTI cannot transform them, so their methods are not
 * recorded. */
#ifndef SJ_AGENT_INPROC_JVM_HIDDEN_BEFORE_H
#define SJ_AGENT_INPROC_JVM_HIDDEN_BEFORE_H

#include "agent/inproc/jvm/internal.h"

/* Adds all loaded hidden classes to the list. Leaves out hidden classes of lambdas, because the
 * code of a lambda is a method of its host class, which can be transformed. */
void sj_hidden_before_find(jvmtiEnv *jvmti, JNIEnv *env);

/* Adds one hidden class to the list. */
void sj_hidden_before_add(jvmtiEnv *jvmti, jclass class);

/* Sends the methods of the listed classes to the recorder. If the policy selects them, the recorder
 * shows them as not recorded. Counts the classes in `*figures`. The calling thread is attached to
 * the JVM and in native state. No exception is pending afterwards. */
void sj_hidden_before_list(jvmtiEnv *jvmti, JNIEnv *env, sj_jvm_figures *figures);

/* True if `name` is the name of a hidden class of a lambda. */
bool sj_hidden_is_lambda(const char *name);

#endif
