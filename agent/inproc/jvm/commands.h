/* Commands of the program, which io.sojourn.Sojourn of sojourn.jar (agent/java) calls. */
#ifndef SJ_AGENT_INPROC_JVM_COMMANDS_H
#define SJ_AGENT_INPROC_JVM_COMMANDS_H

#include "agent/inproc/jvm/internal.h"

/* Defines java.sojourn.Commands, and tells classes io.sojourn.Sojourn that are initialised already.
 * Returns false if the JVM refuses. No exception is pending afterwards. */
bool sj_jvm_define_commands(jvmtiEnv *jvmti, JNIEnv *env);

/* Native methods of java.sojourn.Commands for watches. sj_jvm_thread_id returns the kernel's number
 * of the calling thread. From its first call on, pauses of the collector are noted. */
jint JNICALL sj_jvm_thread_id(JNIEnv *env, jclass class);

/* Notes that the calling thread posts a heartbeat. A stall that it reports later counts from here.
 */
void JNICALL sj_jvm_posted(JNIEnv *env, jclass class);
void JNICALL sj_jvm_stalled(JNIEnv *env, jclass class, jstring name, jlong age_ns, jstring json);

#endif
