/* What a tracer has the agent do in a Mono that runs. It calls these in a thread that holds no lock
 * of the C library; `bind_again` of the agent's state: another thread is to be tried. */
#ifndef SJ_AGENT_INPROC_CORE_MONO_TASKS_H
#define SJ_AGENT_INPROC_CORE_MONO_TASKS_H

/* sojourn_agent_select_mono obeys another policy of the recorder's, as far as the agent can: hooks
 * are prepared, and written by the tracer. */
void sojourn_agent_select_mono(void);

#endif
