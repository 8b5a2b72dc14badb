/* Virtual threads (JDK 21 and later) take turns on the threads that records belong to, so their
 * calls would be nested wrongly. Therefore their calls are only counted. */
#ifndef SJ_AGENT_INPROC_JVM_VIRTUAL_THREADS_H
#define SJ_AGENT_INPROC_JVM_VIRTUAL_THREADS_H

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

/* sj_virtual_threads_init finds out if the JVM has virtual threads; call it before the first probe.
 * sj_virtual_threads_deinit frees its references; call it after the last probe. One thread at a
 * time. */
void sj_virtual_threads_init(JNIEnv *env);
void sj_virtual_threads_deinit(JNIEnv *env);

/* True if the JVM has virtual threads. Thread-safe. */
bool sj_virtual_threads_exist(void);

/* True if the calling thread runs virtual threads, whose calls are not recorded. The first question
 * of a thread may call the JVM. */
bool sj_virtual_threads_run_here(JNIEnv *env);

/* sj_virtual_threads_count counts a call that is not recorded. sj_virtual_threads_calls returns the
 * count. Thread-safe. */
void sj_virtual_threads_count(void);
uint64_t sj_virtual_threads_calls(void);

#endif
