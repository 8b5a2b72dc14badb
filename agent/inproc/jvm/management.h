/* Reads HotSpot's own counters: bytes that threads allocate in the Java heap, and safepoints. */
#ifndef SJ_AGENT_INPROC_JVM_MANAGEMENT_H
#define SJ_AGENT_INPROC_JVM_MANAGEMENT_H

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

/* Finds the counters, if the JVM's table is known. The calling thread belongs to the JVM and is in
 * native state. */
void sj_jvm_find_management(JNIEnv *env);

/* Writes the number of bytes that a thread has allocated so far. `thread` is the JVM's thread
 * number, or 0 for the calling thread. Returns false if the number of bytes is not known. The
 * calling thread belongs to the JVM and is in native state. */
bool sj_jvm_allocated(JNIEnv *env, int64_t thread, uint64_t *bytes);

/* Number and duration of safepoints: all threads of the JVM stop, for example for the garbage
 * collector. */
typedef struct sj_jvm_stops {
    uint64_t count;
    uint64_t milliseconds;
} sj_jvm_stops;

/* Writes the safepoints since the JVM's start. Returns false if they are not known. The calling
 * thread belongs to the JVM and is in native state. */
bool sj_jvm_count_stops(JNIEnv *env, sj_jvm_stops *stops);

#endif
