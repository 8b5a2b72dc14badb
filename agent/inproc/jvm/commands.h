/* Commands from the program: what io.sojourn.Sojourn of sojourn.jar (agent/java) calls. */
#ifndef SJ_AGENT_INPROC_JVM_COMMANDS_H
#define SJ_AGENT_INPROC_JVM_COMMANDS_H

#include "agent/inproc/jvm/internal.h"

/* sj_jvm_define_commands defines java.sojourn.Commands, and lets classes io.sojourn.Sojourn that
 * the program has initialised already know. False: the JVM refused. No exception is pending
 * afterwards.
 */
bool sj_jvm_define_commands(jvmtiEnv *jvmti, JNIEnv *env);

/* The native methods of java.sojourn.Commands for watches. `sj_jvm_thread_id` gives the system's
 * number of the calling thread, and has pauses of the collector noted from then on. */
jint JNICALL sj_jvm_thread_id(JNIEnv *env, jclass class);

/* sj_jvm_posted notes that the calling thread posts a heartbeat: what it reports is since then. */
void JNICALL sj_jvm_posted(JNIEnv *env, jclass class);
void JNICALL sj_jvm_stalled(JNIEnv *env, jclass class, jstring name, jlong age_ns, jstring json);

#endif
