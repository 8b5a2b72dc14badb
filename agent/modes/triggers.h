/* Triggers: watches for what a policy waits for, fires at a bounded rate, counts what it holds
 * back. Used by the drain's thread only. */
#ifndef SJ_AGENT_MODES_TRIGGERS_H
#define SJ_AGENT_MODES_TRIGGERS_H

#include "agent/modes/flight_recorder.h"
#include "agent/modes/stack_sampler.h"
#include "agent/policy/policy.h"
#include "agent/session/frame_writer.h"

typedef struct sj_triggers sj_triggers;

typedef struct sj_triggers_options {
    const sj_policy *policy;    /* borrowed */
    sj_frame_writer *writer;    /* borrowed */
    sj_flight_recorder *flight; /* borrowed; NULL: not in flight mode */
    sj_stack_sampler *stacks;   /* borrowed; NULL: no trigger asks for stacks */
    double ns_per_tick;
} sj_triggers_options;

SJ_MUST_CHECK sj_status sj_triggers_new(const sj_triggers_options *options, sj_triggers **triggers);
void sj_triggers_free(sj_triggers *triggers);

/* sj_triggers_call reports a call that ended: `bits` are the triggers of its function. */
void sj_triggers_call(sj_triggers *triggers, uint32_t bits, uint64_t duration_ticks,
                      uint64_t now_ticks, uint64_t thread);

/* sj_triggers_overdue reports a call that is open for so long, to those of its function's triggers
 * that do not wait for its end: "jank" whose time has passed. Returns which they were; they are not
 * to hear of the call again. */
uint32_t sj_triggers_overdue(sj_triggers *triggers, uint32_t bits, uint64_t age_ticks,
                             uint64_t now_ticks, uint64_t thread);

/* sj_triggers_event reports anything else. `subject`: mark, command; "" when none. */
void sj_triggers_event(sj_triggers *triggers, sj_trigger_event event, const char *subject,
                       uint64_t value_ticks, uint64_t now_ticks, uint64_t thread);

/* sj_triggers_loop reports a turn of an event loop: from waking up to waiting again, or, while it
 * lasts, to now. `*judged`, 0 at its beginning: triggers that have heard of it. */
void sj_triggers_loop(sj_triggers *triggers, const char *thread_name, uint64_t duration_ticks,
                      uint64_t now_ticks, uint64_t thread, uint32_t *judged);

/* sj_triggers_finish sends what was held back since each trigger fired last. */
void sj_triggers_finish(sj_triggers *triggers, uint64_t now_ticks);

/* sj_triggers_is_paused returns whether a trigger stopped recording. */
bool sj_triggers_is_paused(const sj_triggers *triggers);
void sj_triggers_pause(sj_triggers *triggers, bool paused); /* the program asks */

#endif
