/* What a tracer has the agent do in a JVM that runs; `jvm` of the agent's state says when it is
 * done. It calls these in a thread that holds no lock of the C library. */
#ifndef SJ_AGENT_INPROC_CORE_JVM_TASKS_H
#define SJ_AGENT_INPROC_CORE_JVM_TASKS_H

/* sojourn_agent_join_jvm begins to record its methods. */
void sojourn_agent_join_jvm(void);

/* sojourn_agent_select_jvm obeys another policy of the recorder's. */
void sojourn_agent_select_jvm(void);

/* sojourn_agent_leave_jvm gives the JVM its classes back. */
void sojourn_agent_leave_jvm(void);

#endif
