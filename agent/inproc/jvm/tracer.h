/* The second engine: the JVM's own tracing functions, which its interpreter and its compiled code
 * call at entries and exits with -XX:+DTraceMethodProbes, lead to the agent. Classes stay as they
 * are. */
#ifndef SJ_AGENT_INPROC_JVM_TRACER_H
#define SJ_AGENT_INPROC_JVM_TRACER_H

#include "agent/inproc/jvm/internal.h"

#define SJ_TRACER_OPTION "-XX:+DTraceMethodProbes"

/* sj_tracer_start leads the tracing functions of the library at `path`, which lies at `bias`, to
 * the agent. False: they are not known, and nothing is changed. Before a JVM is made. Asks the
 * recorder. */
bool sj_tracer_start(const char *path, uint64_t bias);

/* sj_tracer_is_on returns whether it does. */
bool sj_tracer_is_on(void);

/* sj_tracer_follow has calls of a prepared class recorded, as the recorder chooses. A thread in
 * native state; asks the recorder. */
void sj_tracer_follow(jvmtiEnv *jvmti, JNIEnv *env, jclass class);

/* sj_tracer_follow_all does so for all that are loaded: the choice is another one. */
void sj_tracer_follow_all(jvmtiEnv *jvmti, JNIEnv *env, sj_jvm_figures *figures);

/* sj_tracer_leave ends it, or gives up on a JVM whose methods cannot be identified. What the JVM
 * calls returns at once, for good. Any thread may be in it. */
void sj_tracer_leave(void);

/* sj_tracer_forget ends it, too, if a JVM that has never come to run was not left. It frees what
 * was used before sj_tracer_leave. When no thread is in the agent. */
void sj_tracer_forget(void);

#endif
