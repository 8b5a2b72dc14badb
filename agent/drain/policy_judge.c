#include "agent/drain/policy_judge.h"

#include "agent/policy/thread_filter.h"

bool sj_policy_judge_thread(const sj_policy_judge *judge, const char *name)
{
    return judge->rules != NULL ? sj_function_rules_thread(judge->rules, name)
                                : sj_thread_is_wanted(judge->policy, name);
}

bool sj_policy_judge_filters_threads(const sj_policy_judge *judge)
{
    return judge->policy != NULL && judge->policy->thread_count != 0;
}

bool sj_policy_judge_asks_names(const sj_policy_judge *judge)
{
    return sj_policy_judge_filters_threads(judge) ||
           (judge->policy != NULL && sj_policy_watches_loops(judge->policy));
}

bool sj_policy_judge_filters_calls(const sj_policy_judge *judge)
{
    const sj_policy *policy = judge->policy;
    return policy != NULL &&
           (policy->max_depth != 0 || policy->minimum_ns != 0 || policy->thread_count != 0 ||
            policy->sampled_count != 0 || policy->trigger_count != 0 || policy->begins_paused);
}

uint32_t sj_policy_judge_triggers(const sj_policy_judge *judge, uint32_t function)
{
    return sj_function_rules_get(judge->rules, function).triggers;
}

bool sj_policy_judge_needs_clock(const sj_function_rules *rules, uint32_t function)
{
    if (rules == NULL) {
        return false;
    }
    const sj_function_rule rule = sj_function_rules_get(rules, function);
    return rule.triggers != 0 || rule.values != 0 || rule.is_timed;
}

uint64_t sj_policy_judge_minimum_ticks(const sj_policy_judge *judge)
{
    return (uint64_t)((double)judge->policy->minimum_ns / judge->ns_per_tick + 0.5);
}

static void fire(const sj_policy_judge *judge, const sj_value_rule *rule, uint64_t ticks,
                 uint64_t thread)
{
    if (judge->triggers != NULL) {
        sj_triggers_event(judge->triggers, SJ_TRIGGER_VALUE, rule->name, 0, ticks, thread);
    }
}

sj_rule_set sj_policy_judge_value(const sj_policy_judge *judge, uint32_t function,
                                  const sj_block_value *value, uint64_t ticks, uint64_t thread)
{
    sj_rule_set kept = {0};
    if (judge->rules == NULL) {
        return kept;
    }
    const sj_value_rules *values = judge->policy->selection.values;
    SJ_EACH_RULE (i, &sj_function_rules_values(judge->rules, function)->values) {
        const sj_value_rule *rule = &values->items[i];
        /* Rules with conditions on the whole call are applied to the call. */
        if ((rule->condition_count != 0 && !rule->changes) || !sj_value_rule_holds(rule, value)) {
            continue;
        }
        sj_rule_set_add(&kept, i);
        if (sj_value_rule_has_condition(rule)) {
            fire(judge, rule, ticks, thread);
        }
    }
    return kept;
}

sj_rule_set sj_policy_judge_whole_call(const sj_policy_judge *judge, const sj_assembled_call *call,
                                       const char *thread_name, uint64_t thread)
{
    const sj_function_rules *rules = judge->rules;
    sj_rule_set met = {0};
    if (rules == NULL) {
        return met;
    }
    sj_value_rules *values = judge->policy->selection.values;
    const uint32_t caller =
        sj_function_rules_is_import(rules, call->caller) ? call->caller_of_caller : call->caller;
    const sj_call_facts facts = {
        .values = call->values,
        .value_count = call->value_count,
        .duration_ns =
            (uint64_t)((double)(call->now_ticks - call->start_ticks) * judge->ns_per_tick),
        .has_ended = call->at_exit,
        .thread = thread_name,
        .called_from = &sj_function_rules_values(rules, caller)->called_from};
    SJ_EACH_RULE (i, &sj_function_rules_values(rules, call->function)->values) {
        const sj_value_rule *rule = &values->items[i];
        if (rule->condition_count == 0 || rule->changes ||
            sj_value_rule_is_late(rule) != call->at_exit ||
            !sj_value_rules_meet(values, (uint32_t)i, &facts)) {
            continue;
        }
        sj_rule_set_add(&met, i);
        fire(judge, rule, call->now_ticks, thread);
    }
    return met;
}
