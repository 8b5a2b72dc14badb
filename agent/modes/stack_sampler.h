/* Native stacks of all threads of the recorded processes, when a trigger asks for them. A separate
 * thread reads them from outside, so that the drain continues. The process is stopped only while
 * the tops of its stacks are copied; they are unwound afterwards. */
#ifndef SJ_AGENT_MODES_STACK_SAMPLER_H
#define SJ_AGENT_MODES_STACK_SAMPLER_H

#include "agent/registry/registry.h"
#include "agent/session/frame_writer.h"

typedef struct sj_stack_sampler sj_stack_sampler;

/* Starts the thread. Returns SJ_ENOMEM, or SJ_EIO if the thread cannot start. */
SJ_MUST_CHECK sj_status sj_stack_sampler_start(sj_frame_writer *writer, sj_registry *registry,
                                               sj_stack_sampler **stacks, sj_error *error);

/* Finishes pending requests and ends the thread. Blocks. NULL is allowed. */
void sj_stack_sampler_stop(sj_stack_sampler *stacks);

/* Requests the stacks of all living processes; copies `cause`. Returns SJ_EAGAIN and drops the
 * request if too many are pending. Thread-safe. */
SJ_MUST_CHECK sj_status sj_stack_sampler_request(sj_stack_sampler *stacks, const char *cause);

#endif
