/* Entry points that a tracer calls in a process with a running language runtime, on a thread that
 * holds no lock of the C library. agent_state.jvm says when a task of the JVM is done. If
 * agent_state.bind_again is set after the task of Mono, the tracer retries on another thread. */
#ifndef SJ_AGENT_INPROC_CORE_RUNTIME_TASKS_H
#define SJ_AGENT_INPROC_CORE_RUNTIME_TASKS_H

/* Starts to record Java methods. */
void sojourn_agent_join_jvm(void);

/* Apply a new policy of the recorder. sojourn_agent_select_mono only prepares hooks, which the
 * tracer writes. */
void sojourn_agent_select_jvm(void);
void sojourn_agent_select_mono(void);

/* Removes all probes from the JVM's classes. */
void sojourn_agent_leave_jvm(void);

#endif
