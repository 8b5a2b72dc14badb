/* What Java threads have used when they end, or the JVM does: for the recorder's list of threads.
 */
#ifndef SJ_AGENT_INPROC_JVM_THREADS_H
#define SJ_AGENT_INPROC_JVM_THREADS_H

#include <jvmti.h>

/* sj_jvm_on_thread_start and sj_jvm_on_thread_end are JVMTI's events. */
void JNICALL sj_jvm_on_thread_start(jvmtiEnv *jvmti, JNIEnv *env, jthread thread);
void JNICALL sj_jvm_on_thread_end(jvmtiEnv *jvmti, JNIEnv *env, jthread thread);

/* sj_jvm_count_threads notes what those that started under us and live have allocated so far. A
 * thread of the JVM's, in native state. */
void sj_jvm_count_threads(JNIEnv *env);

#endif
