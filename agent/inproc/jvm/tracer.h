/* Records Java methods without changing classes. With -XX:+DTraceMethodProbes, HotSpot's
 * interpreter and compiled code call its tracing functions at each entry and exit. The agent makes
 * these functions jump to its own. */
#ifndef SJ_AGENT_INPROC_JVM_TRACER_H
#define SJ_AGENT_INPROC_JVM_TRACER_H

#include "agent/inproc/jvm/internal.h"

#define SJ_TRACER_OPTION "-XX:+DTraceMethodProbes"

/* Makes the tracing functions of the JVM's library at `path`, loaded at `bias`, jump to the agent.
 * Asks the recorder for their addresses. Returns false if they are not known or cannot be patched.
 * Call it before a JVM is created. */
bool sj_tracer_start(const char *path, uint64_t bias);

/* True if the tracing functions jump to the agent. */
bool sj_tracer_is_on(void);

/* Asks the recorder which methods of a prepared class to record, and records them from now on. If
 * the recorder wants none of them, stops recording all of them. The calling thread is in native
 * state. */
void sj_tracer_add_class(jvmtiEnv *jvmti, JNIEnv *env, jclass class);

/* Calls sj_tracer_add_class for all prepared classes, after a change of the policy. */
void sj_tracer_add_all(jvmtiEnv *jvmti, JNIEnv *env, sj_jvm_figures *figures);

/* Stops recording: the tracing functions return at once from now on. Threads may be running in
 * them. */
void sj_tracer_stop(void);

/* Stops recording if sj_tracer_stop was not called; else frees the table of methods. No thread is
 * in the agent. */
void sj_tracer_deinit(void);

#endif
