/* Virtual threads (JDK 21 and later). Several of them run on one kernel thread in turn, and records
 * belong to kernel threads. Records of their calls would be nested wrongly, so the agent only
 * counts these calls. */
#ifndef SJ_AGENT_INPROC_JVM_VIRTUAL_THREADS_H
#define SJ_AGENT_INPROC_JVM_VIRTUAL_THREADS_H

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

/* Finds out whether the JVM has virtual threads. Call it before the first probe. Not thread-safe.
 */
void sj_virtual_threads_init(JNIEnv *env);

/* Deletes the references to the JVM. Call it after the last probe. Not thread-safe. */
void sj_virtual_threads_deinit(JNIEnv *env);

/* True if the JVM has virtual threads. Thread-safe. */
bool sj_virtual_threads_exist(void);

/* True if the calling thread runs virtual threads. The first call on a thread may call Java. */
bool sj_virtual_threads_run_here(JNIEnv *env);

/* Counts a call that is not recorded. Thread-safe. */
void sj_virtual_threads_count(void);

/* Returns the number of counted calls. Thread-safe. */
uint64_t sj_virtual_threads_calls(void);

#endif
