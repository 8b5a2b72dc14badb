/* What threads allocate in the Java heap, as HotSpot's own counters say. */
#ifndef SJ_AGENT_INPROC_JVM_ALLOCATED_H
#define SJ_AGENT_INPROC_JVM_ALLOCATED_H

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

/* sj_jvm_find_allocated finds the counters of this JVM, if it is one whose table is known. Any
 * thread of the JVM's, in native state. */
void sj_jvm_find_allocated(JNIEnv *env);

/* sj_jvm_allocated tells how many bytes a thread has allocated so far, by the JVM's number of it;
 * 0: the calling one. False: that is not known. A thread of the JVM's, in native state. */
bool sj_jvm_allocated(JNIEnv *env, int64_t thread, uint64_t *bytes);

#endif
