/* Entry points that a tracer calls in a process with a running JVM, on a thread that holds no lock
 * of the C library. agent_state.jvm says when the task is done. */
#ifndef SJ_AGENT_INPROC_CORE_JVM_TASKS_H
#define SJ_AGENT_INPROC_CORE_JVM_TASKS_H

/* Starts to record Java methods. */
void sojourn_agent_join_jvm(void);

/* Applies a new policy of the recorder. */
void sojourn_agent_select_jvm(void);

/* Removes all probes from the JVM's classes. */
void sojourn_agent_leave_jvm(void);

#endif
