/* HotSpot's own counters: what threads allocate in the Java heap, and stops of the whole JVM. */
#ifndef SJ_AGENT_INPROC_JVM_MANAGEMENT_H
#define SJ_AGENT_INPROC_JVM_MANAGEMENT_H

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

/* sj_jvm_find_management finds the counters of this JVM, if it is one whose table is known. Any
 * thread of the JVM's, in native state. */
void sj_jvm_find_management(JNIEnv *env);

/* sj_jvm_allocated tells how many bytes a thread has allocated so far, by the JVM's number of it;
 * 0: the calling one. False: that is not known. A thread of the JVM's, in native state. */
bool sj_jvm_allocated(JNIEnv *env, int64_t thread, uint64_t *bytes);

/* Times that all threads of the JVM were stopped (safepoints), those for the collector included. */
typedef struct sj_jvm_stops {
    uint64_t count;
    uint64_t milliseconds;
} sj_jvm_stops;

/* sj_jvm_count_stops tells them since the JVM's start; false: they are not known. A thread of the
 * JVM's, in native state. */
bool sj_jvm_count_stops(JNIEnv *env, sj_jvm_stops *stops);

#endif
