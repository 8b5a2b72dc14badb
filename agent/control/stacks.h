/* Native stacks: where all threads of the recorded processes stand, when a trigger asks for it.
 * They are taken from outside, by a thread of their own, so that the drain goes on meanwhile: the
 * process is stopped for as long as it takes to copy the tops of its stacks, and followed
 * afterwards. */
#ifndef SJ_AGENT_CONTROL_STACKS_H
#define SJ_AGENT_CONTROL_STACKS_H

#include "agent/control/emitter.h"
#include "agent/control/roster.h"

typedef struct sj_stacks sj_stacks;

SJ_MUST_CHECK sj_status sj_stacks_start(sj_emitter *emitter, sj_roster *roster, sj_stacks **stacks,
                                        sj_error *error);

/* sj_stacks_stop takes what was asked for and ends the thread. Blocking. NULL is allowed. */
void sj_stacks_stop(sj_stacks *stacks);

/* sj_stacks_take asks for the stacks of all living processes; `cause` is copied. SJ_EAGAIN: so many
 * are waited for already that this request is left out. Any thread. */
SJ_MUST_CHECK sj_status sj_stacks_take(sj_stacks *stacks, const char *cause);

#endif
