/* Adds the calls that were open at attach (sj_drain_preopen) to the streams of their threads. Used
 * by the drain's thread only. */
#ifndef SJ_AGENT_DRAIN_OPEN_CALLS_H
#define SJ_AGENT_DRAIN_OPEN_CALLS_H

#include "agent/drain/thread_drain.h"

/* Enters the open calls of a new thread into its assembler and counts them in `unflushed`. Does
 * nothing if the policy does not want the thread's name. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_open_calls_enter(const sj_process_drain *process,
                                            sj_thread_drain *thread);

/* Removes the entered calls of a thread from the list. A later thread with the same tid must not
 * get them. */
void sj_open_calls_forget(const sj_process_drain *process, const sj_thread_drain *thread);

/* Returns the number of open calls of the process that were neither entered nor sent. */
size_t sj_open_calls_count(const sj_drain_shared *shared, pid_t pid);

/* Sends the open calls of threads without any record, in which no call began or ended. Call it at
 * the end. Returns SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_open_calls_report_remaining(const sj_process_drain *process);

#endif
