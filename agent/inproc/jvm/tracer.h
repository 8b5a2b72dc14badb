/* The second engine: HotSpot's own tracing functions jump to the agent. With
 * -XX:+DTraceMethodProbes its interpreter and its compiled code call them at each entry and exit.
 * Classes are not changed. */
#ifndef SJ_AGENT_INPROC_JVM_TRACER_H
#define SJ_AGENT_INPROC_JVM_TRACER_H

#include "agent/inproc/jvm/internal.h"

#define SJ_TRACER_OPTION "-XX:+DTraceMethodProbes"

/* Makes the tracing functions of the library at `path`, which is loaded at `bias`, jump to the
 * agent. Asks the recorder where they are. Returns false, without a change, if they are not known.
 * Call it before a JVM is created. */
bool sj_tracer_start(const char *path, uint64_t bias);

/* True if the tracing functions jump to the agent. */
bool sj_tracer_is_on(void);

/* Records calls of a prepared class as the recorder chooses. Asks the recorder. The calling thread
 * is in native state. */
void sj_tracer_add_class(jvmtiEnv *jvmti, JNIEnv *env, jclass class);

/* Does the same for all loaded classes, after a change of the policy. */
void sj_tracer_add_all(jvmtiEnv *jvmti, JNIEnv *env, sj_jvm_figures *figures);

/* Ends the tracing. From then on what the JVM calls returns at once. Threads may be in it. */
void sj_tracer_stop(void);

/* Ends the tracing, too, if the JVM never got to run. Frees the memory that was used before
 * sj_tracer_stop. No thread is in the agent. */
void sj_tracer_deinit(void);

#endif
