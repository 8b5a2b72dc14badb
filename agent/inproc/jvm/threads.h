/* Reports how many bytes each Java thread has allocated, when the thread or the JVM ends. */
#ifndef SJ_AGENT_INPROC_JVM_THREADS_H
#define SJ_AGENT_INPROC_JVM_THREADS_H

#include <jvmti.h>

/* Handles JVMTI's ThreadStart: stores the ids of the calling thread. */
void JNICALL sj_jvm_on_thread_start(jvmtiEnv *jvmti, JNIEnv *env, jthread thread);

/* Handles JVMTI's ThreadEnd: reports the calling thread. */
void JNICALL sj_jvm_on_thread_end(jvmtiEnv *jvmti, JNIEnv *env, jthread thread);

/* Reports the calling thread, and all running threads that started after the agent was in the JVM.
 * The calling thread belongs to the JVM and is in native state. */
void sj_jvm_count_threads(JNIEnv *env);

#endif
