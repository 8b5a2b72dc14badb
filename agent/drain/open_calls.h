/* Where the calls that were open at attach (sj_drain_preopen) come to: the streams of their
 * threads. The drain's thread only. */
#ifndef SJ_AGENT_DRAIN_OPEN_CALLS_H
#define SJ_AGENT_DRAIN_OPEN_CALLS_H

#include "agent/drain/thread_drain.h"

/* Enters the open calls of a thread that has just been found, and counts them in `unflushed`.
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_open_calls_enter(const sj_process_drain *process,
                                            sj_thread_drain *thread);

/* Forgets the open calls of a thread that were entered: a later thread of the same number does not
 * inherit them. */
void sj_open_calls_forget(const sj_process_drain *process, const sj_thread_drain *thread);

/* Returns the number of open calls of the process that were neither entered nor sent. */
size_t sj_open_calls_count(const sj_drain_shared *shared, pid_t pid);

/* sj_open_calls_report_remaining sends, at the end, the open calls of the threads that made no call
 * and ended none while they were recorded, so that nothing else is known of them: a worker that
 * waited all the time. SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_open_calls_report_remaining(const sj_process_drain *process);

#endif
