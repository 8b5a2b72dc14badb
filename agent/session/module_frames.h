/* Module frames: the function table of a plan, compressed and cut into parts. */
#ifndef SJ_AGENT_SESSION_MODULE_FRAMES_H
#define SJ_AGENT_SESSION_MODULE_FRAMES_H

#include "agent/planner/planner.h"
#include "agent/session/frame_writer.h"

/* Sends all functions of `plan` as module number `module`, with dense ids from `first_function`.
 * Returns SJ_ENOMEM, SJ_ELIMIT or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_module_frames_send(sj_frame_writer *writer, const sj_plan_header *plan,
                                              const char *path, uint32_t module,
                                              uint32_t first_function);

#endif
