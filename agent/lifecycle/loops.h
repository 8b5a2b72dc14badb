/* Event loops: notes when threads begin and end to wait for events, so that the recorder knows how
 * long each turn of a loop took. Calls of poll, epoll_wait, select and their kin from all modules
 * are led through functions of the agent; only when a policy watches loops, and only in programs
 * that were started with the agent. */
#ifndef SJ_AGENT_LIFECYCLE_LOOPS_H
#define SJ_AGENT_LIFECYCLE_LOOPS_H

/* sj_loops_follow leads the calls of all loaded modules through the agent; again after others were
 * loaded. Takes the loader's lock. */
void sj_loops_follow(void);

#endif
