/* Figures of Java threads, for the recorder's list of threads. They are read when a thread or the
 * JVM ends. */
#ifndef SJ_AGENT_INPROC_JVM_THREADS_H
#define SJ_AGENT_INPROC_JVM_THREADS_H

#include <jvmti.h>

/* JVMTI's ThreadStart and ThreadEnd. */
void JNICALL sj_jvm_on_thread_start(jvmtiEnv *jvmti, JNIEnv *env, jthread thread);
void JNICALL sj_jvm_on_thread_end(jvmtiEnv *jvmti, JNIEnv *env, jthread thread);

/* Reports how many bytes each running thread that started under us has allocated. The calling
 * thread belongs to the JVM and is in native state. */
void sj_jvm_count_threads(JNIEnv *env);

#endif
