/* Native stacks: where all threads of the recorded processes stand, when a trigger asks for it.
 * They are taken from outside, by a thread of their own, so that the drain goes on meanwhile: the
 * process is stopped for as long as it takes to copy the tops of its stacks, and followed
 * afterwards. */
#ifndef SJ_AGENT_MODES_STACK_SAMPLER_H
#define SJ_AGENT_MODES_STACK_SAMPLER_H

#include "agent/registry/registry.h"
#include "agent/session/frame_writer.h"

typedef struct sj_stack_sampler sj_stack_sampler;

SJ_MUST_CHECK sj_status sj_stack_sampler_start(sj_frame_writer *writer, sj_registry *registry,
                                               sj_stack_sampler **stacks, sj_error *error);

/* sj_stack_sampler_stop takes what was asked for and ends the thread. Blocking. NULL is allowed. */
void sj_stack_sampler_stop(sj_stack_sampler *stacks);

/* sj_stack_sampler_take asks for the stacks of all living processes; `cause` is copied. SJ_EAGAIN:
 * so many are waited for already that this request is left out. Any thread. */
SJ_MUST_CHECK sj_status sj_stack_sampler_take(sj_stack_sampler *stacks, const char *cause);

#endif
