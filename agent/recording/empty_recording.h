/* Why a recording holds no call: the sentence that its summary gives. */
#ifndef SJ_AGENT_RECORDING_EMPTY_RECORDING_H
#define SJ_AGENT_RECORDING_EMPTY_RECORDING_H

#include "agent/policy/policy.h"
#include "agent/recording/recording.h"

/* sj_empty_recording_explain writes why nothing was recorded, with what there was instead; "" when
 * calls were recorded or lost, or the agent did not start. `policy` and `rules` may be NULL.
 * Reads the summary's counters, which are final. */
void sj_empty_recording_explain(const sj_recording_summary *summary, const sj_policy *policy,
                                sj_function_rules *rules, char *text, size_t capacity);

#endif
