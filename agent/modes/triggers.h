/* Triggers: waits for the events of a policy, fires at a limited rate, and counts suppressed
 * firings. Only the drain's thread uses it. */
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

/* Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_triggers_new(const sj_triggers_options *options, sj_triggers **triggers);
void sj_triggers_free(sj_triggers *triggers);

/* Reports a call that ended: `bits` are the triggers of its function. */
void sj_triggers_call(sj_triggers *triggers, uint32_t bits, uint64_t duration_ticks,
                      uint64_t now_ticks, uint64_t thread);

/* Reports a call that has been open for `age_ticks` to the "jank" triggers of its function. These
 * triggers do not wait for the end of the call. Returns the triggers whose time has passed. The
 * caller must not report the call to the returned triggers again. */
uint32_t sj_triggers_overdue(sj_triggers *triggers, uint32_t bits, uint64_t age_ticks,
                             uint64_t now_ticks, uint64_t thread);

/* Reports another event. `subject`: mark or command; "": none. */
void sj_triggers_event(sj_triggers *triggers, sj_trigger_event event, const char *subject,
                       uint64_t value_ticks, uint64_t now_ticks, uint64_t thread);

/* Reports an iteration of an event loop: from the end of a wait to the next wait, or to now if the
 * iteration is not finished. `*judged` holds the triggers that have evaluated the iteration
 * already; 0 at its start. */
void sj_triggers_loop(sj_triggers *triggers, const char *thread_name, uint64_t duration_ticks,
                      uint64_t now_ticks, uint64_t thread, uint32_t *judged);

/* Sends the number of firings suppressed since each trigger fired last. */
void sj_triggers_finish(sj_triggers *triggers, uint64_t now_ticks);

/* True if a trigger stopped recording. */
bool sj_triggers_is_paused(const sj_triggers *triggers);
void sj_triggers_pause(sj_triggers *triggers, bool paused); /* as the program requests */

#endif
