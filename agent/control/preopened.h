/* Where the calls that were open at attach (sj_drain_preopen) come to: the streams of their
 * threads. The drain's thread only. */
#ifndef SJ_AGENT_CONTROL_PREOPENED_H
#define SJ_AGENT_CONTROL_PREOPENED_H

#include "agent/control/drained_thread.h"

/* sj_preopened_enter enters the open calls of a thread that has just been found: once, so that a
 * later thread of the same number does not inherit them. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_preopened_enter(const sj_drained_process *process,
                                           sj_drained_thread *thread);

/* sj_preopened_tell_rest tells, at the end, the open calls of the threads that made no call and
 * ended none while they were recorded, so that nothing else is known of them: a worker that waited
 * all the time. SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_preopened_tell_rest(const sj_drained_process *process);

#endif
