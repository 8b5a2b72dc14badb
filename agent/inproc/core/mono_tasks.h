/* Entry points that a tracer calls in a process with a running Mono runtime, on a thread that holds
 * no lock of the C library. If agent_state.bind_again is set afterwards, the tracer retries on
 * another thread. */
#ifndef SJ_AGENT_INPROC_CORE_MONO_TASKS_H
#define SJ_AGENT_INPROC_CORE_MONO_TASKS_H

/* Applies a new policy of the recorder. Prepares hooks, which the tracer writes. */
void sojourn_agent_select_mono(void);

#endif
