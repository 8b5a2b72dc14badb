/* Explains in one sentence of the summary why a recording has no calls. */
#ifndef SJ_AGENT_RECORDING_EMPTY_RECORDING_H
#define SJ_AGENT_RECORDING_EMPTY_RECORDING_H

#include "agent/policy/policy.h"
#include "agent/recording/recording.h"

/* Writes to `text` why the recording has no calls, and which names were found instead of those that
 * the policy selects. Writes "" if calls were recorded or lost, or if the agent did not start.
 * `policy` and `rules` may be NULL. The summary's counters must be final. */
void sj_empty_recording_explain(const sj_recording_summary *summary, const sj_policy *policy,
                                sj_function_rules *rules, char *text, size_t capacity);

#endif
