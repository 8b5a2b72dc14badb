/* Virtual threads (JDK 21 and later) take turns on the threads that records belong to, so that
 * their calls would be nested as nobody made them. Until they are followed, their calls are counted
 * only. */
#ifndef SJ_AGENT_INPROC_JVM_VIRTUAL_THREADS_H
#define SJ_AGENT_INPROC_JVM_VIRTUAL_THREADS_H

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

/* sj_virtual_threads_find looks whether the JVM has virtual threads: before any probe is entered.
 * sj_virtual_threads_forget releases what it keeps: after the last. One thread at a time. */
void sj_virtual_threads_find(JNIEnv *env);
void sj_virtual_threads_forget(JNIEnv *env);

/* sj_virtual_threads_are_there returns whether it has. Any thread. */
bool sj_virtual_threads_are_there(void);

/* sj_virtual_threads_run_here returns whether the calling thread runs virtual threads, whose calls
 * are not recorded. May call the JVM, the first time that a thread asks. */
bool sj_virtual_threads_run_here(JNIEnv *env);

/* sj_virtual_threads_count counts a call that is not recorded; sj_virtual_threads_calls returns how
 * many there were. Any thread. */
void sj_virtual_threads_count(void);
uint64_t sj_virtual_threads_calls(void);

#endif
