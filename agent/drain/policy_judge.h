/* The policy judge: decides by the rules of the policy which threads, calls and values are kept,
 * and fires the triggers of value rules. Everything else in the drain asks it. Used by the drain's
 * thread only. */
#ifndef SJ_AGENT_DRAIN_POLICY_JUDGE_H
#define SJ_AGENT_DRAIN_POLICY_JUDGE_H

#include "agent/assembler/assembler.h"
#include "agent/modes/triggers.h"
#include "agent/registry/function_rules.h"

/* The policy and its rules, by which a judge decides. All pointers are borrowed. */
typedef struct sj_policy_judge {
    const sj_policy *policy;  /* NULL: everything is kept */
    sj_function_rules *rules; /* NULL without a policy */
    sj_triggers *triggers;    /* NULL: nothing is fired */
    double ns_per_tick;
} sj_policy_judge;

/* The decision about a call at its entry. */
typedef struct sj_call_verdict {
    bool is_kept;
    sj_filter_reason reason; /* why the call is not kept; meaningless if it is */
    uint32_t triggers;       /* bit set of the triggers of its function */
} sj_call_verdict;

/* True if the policy wants a thread of this name. The rules store the name. */
bool sj_policy_judge_thread(const sj_policy_judge *judge, const char *name);

/* sj_policy_judge_filters_threads returns true if the policy chooses threads by name.
 * sj_policy_judge_asks_names also does if it uses names of threads otherwise. */
bool sj_policy_judge_filters_threads(const sj_policy_judge *judge);
bool sj_policy_judge_asks_names(const sj_policy_judge *judge);

/* True if the policy has rules about calls, so that sj_policy_judge_call must be asked. */
bool sj_policy_judge_filters_calls(const sj_policy_judge *judge);

/* Decides about a call of `function` that begins with `depth` calls around it. If only a share of
 * the function's calls is kept, the rules count it. */
static inline sj_call_verdict sj_policy_judge_call(const sj_policy_judge *judge, uint32_t function,
                                                   uint32_t depth, bool is_wanted_thread)
{
    const sj_function_rule rule = sj_function_rules_get(judge->rules, function);
    sj_call_verdict verdict = {.triggers = rule.triggers};
    if (!is_wanted_thread) {
        verdict.reason = SJ_FILTERED_THREAD;
    } else if (judge->policy->max_depth != 0 && depth >= judge->policy->max_depth) {
        verdict.reason = SJ_FILTERED_DEPTH;
    } else if (rule.one_in > 1 && !sj_function_rules_sample(judge->rules, function, rule.one_in)) {
        verdict.reason = SJ_FILTERED_SAMPLED;
    } else {
        verdict.is_kept = true;
    }
    return verdict;
}

/* Returns the triggers of a function, as a bit set. */
uint32_t sj_policy_judge_triggers(const sj_policy_judge *judge, uint32_t function);

/* True if each call of a function reads the clock: triggers, value rules or calls.timed name it.
 * `rules`: NULL without a policy. */
bool sj_policy_judge_needs_clock(const sj_function_rules *rules, uint32_t function);

/* Returns how long a call must last to be kept, in ticks. */
uint64_t sj_policy_judge_minimum_ticks(const sj_policy_judge *judge);

/* Returns the rules about single values that keep a value of `function`. Fires the triggers of the
 * rules whose condition it meets. `thread` is the thread's number. */
sj_rule_set sj_policy_judge_value(const sj_policy_judge *judge, uint32_t function,
                                  const sj_block_value *value, uint64_t ticks, uint64_t thread);

/* Returns the rules with conditions on a whole call that the call meets. Fires their triggers. */
sj_rule_set sj_policy_judge_whole_call(const sj_policy_judge *judge, const sj_assembled_call *call,
                                       const char *thread_name, uint64_t thread);

#endif
