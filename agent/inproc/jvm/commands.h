/* Native methods that the program calls by the class io.sojourn.Sojourn of sojourn.jar
 * (agent/java). */
#ifndef SJ_AGENT_INPROC_JVM_COMMANDS_H
#define SJ_AGENT_INPROC_JVM_COMMANDS_H

#include "agent/inproc/jvm/internal.h"

/* Defines java.sojourn.Commands. Then sets isThere of each loaded class io.sojourn.Sojourn. Returns
 * false if the JVM refuses. No exception is pending afterwards. */
bool sj_jvm_define_commands(jvmtiEnv *jvmti, JNIEnv *env);

/* Implements Commands.thread: returns the kernel's id of the calling thread, or 0 if the process is
 * not recorded. From the first call on, the agent stores the pauses of the garbage collector. */
jint JNICALL sj_jvm_thread_id(JNIEnv *env, jclass class);

/* Implements Commands.posted: stores that the calling thread posts a heartbeat now. A stall that it
 * reports later began at this time. */
void JNICALL sj_jvm_posted(JNIEnv *env, jclass class);

/* Implements Commands.stalled: reports a stall of a watched thread to the recorder. */
void JNICALL sj_jvm_stalled(JNIEnv *env, jclass class, jstring name, jlong age_ns, jstring json);

#endif
