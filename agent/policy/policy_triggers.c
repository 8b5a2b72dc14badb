#include "agent/policy/policy_reader.h"

#include <string.h>

static const char *const event_words[SJ_TRIGGER_EVENTS] = {
    "slow_call", "jank", "rate", "nth_call", "mark", "command", "crash", "app", "value"};
static const char *const action_words[SJ_TRIGGER_ACTIONS] = {"start", "stop", "dump", "mark",
                                                             "stacks"};

const char *sj_trigger_event_text(sj_trigger_event event)
{
    return event_words[event];
}

const char *sj_trigger_action_text(unsigned place)
{
    return action_words[place];
}

bool sj_policy_watches_loops(const sj_policy *policy)
{
    for (size_t i = 0; i < policy->trigger_count; i++) {
        if (policy->triggers[i].loop.text != NULL) {
            return true;
        }
    }
    return false;
}

static sj_status read_actions(sj_policy_reader *reader, void *target, json_t *value)
{
    unsigned *actions = target;
    if (!json_is_array(value) || json_array_size(value) == 0) {
        return sj_policy_fail(reader, false,
                              "a list of \"start\", \"stop\", \"dump\", \"mark\", \"stacks\" is "
                              "needed");
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        size_t index = 0;
        sj_policy_enter(reader, NULL, i);
        SJ_TRY(sj_policy_word(reader, json_array_get(value, i), action_words, SJ_TRIGGER_ACTIONS,
                              &index));
        *actions |= 1U << index;
        sj_policy_leave(reader);
    }
    return SJ_OK;
}

/* Checks that the trigger has the keys that its event requires. */
static sj_status check_trigger(sj_policy_reader *reader, const sj_trigger *trigger, json_t *value)
{
    const char *event = sj_trigger_event_text(trigger->event);
    const bool needs_function =
        trigger->event == SJ_TRIGGER_RATE || trigger->event == SJ_TRIGGER_NTH_CALL;
    const bool needs_time =
        trigger->event == SJ_TRIGGER_SLOW_CALL || trigger->event == SJ_TRIGGER_JANK;
    if (json_object_get(value, "on") == NULL) {
        return sj_policy_fail(reader, false, "a trigger needs \"on\"");
    }
    if (trigger->actions == 0) {
        return sj_policy_fail(reader, false, "a trigger needs \"do\"");
    }
    if (needs_function && (trigger->subject.text == NULL || trigger->times == 0)) {
        return sj_policy_fail(reader, false, "\"%s\" needs \"function\" and \"times\"", event);
    }
    if (trigger->loop.text != NULL &&
        (trigger->event != SJ_TRIGGER_JANK || trigger->subject.text != NULL)) {
        return sj_policy_fail(reader, false, "\"loop\" is for \"jank\", without \"function\"");
    }
    if (trigger->event == SJ_TRIGGER_CRASH && (trigger->actions & SJ_ACTION_STACKS) != 0) {
        return sj_policy_fail(reader, false, "a crashed process has no stacks");
    }
    if (needs_time && trigger->limit_ns == 0) {
        return sj_policy_fail(reader, false, "\"%s\" needs \"longer_than\"", event);
    }
    return SJ_OK;
}

static const sj_policy_key keys[] = {
    {"on", SJ_KEY_WORD, SJ_MEMBER(sj_trigger, event), SJ_WORDS(event_words)},
    {"function", SJ_KEY_PATTERN, SJ_MEMBER(sj_trigger, subject)},
    {"name", SJ_KEY_PATTERN, SJ_MEMBER(sj_trigger, subject)},
    {"longer_than", SJ_KEY_TIME, SJ_MEMBER(sj_trigger, limit_ns), .least = 1},
    {"loop", SJ_KEY_PATTERN, SJ_MEMBER(sj_trigger, loop)},
    {"times", SJ_KEY_NUMBER, SJ_MEMBER(sj_trigger, times), .least = 1, .most = UINT32_MAX},
    {"within", SJ_KEY_TIME, SJ_MEMBER(sj_trigger, within_ns), .least = 1},
    {"pause", SJ_KEY_TIME, SJ_MEMBER(sj_trigger, pause_ns)},
    {"most", SJ_KEY_NUMBER, SJ_MEMBER(sj_trigger, most), .least = 1, .most = UINT32_MAX},
    {"do", SJ_KEY_CUSTOM, SJ_MEMBER(sj_trigger, actions), .parse = read_actions}};

static sj_status read_trigger(sj_policy_reader *reader, sj_trigger *trigger, json_t *value)
{
    *trigger = (sj_trigger){.within_ns = UINT64_C(1000000000), .pause_ns = UINT64_C(1000000000)};
    SJ_TRY(sj_policy_object(reader, value, trigger, SJ_KEY_LIST(keys)));
    SJ_TRY(check_trigger(reader, trigger, value));
    trigger->times = trigger->times != 0 ? trigger->times : 1;
    return SJ_OK;
}

sj_status sj_policy_read_triggers(sj_policy_reader *reader, void *target, json_t *value)
{
    sj_policy *policy = target;
    if (!json_is_array(value) || json_array_size(value) > SJ_POLICY_TRIGGERS) {
        return sj_policy_fail(reader, false, "a list [ ] of at most %d triggers is needed",
                              SJ_POLICY_TRIGGERS);
    }
    for (size_t i = 0; i < policy->trigger_count; i++) {
        sj_pattern_free(&policy->triggers[i].subject);
        sj_pattern_free(&policy->triggers[i].loop);
    }
    memset(policy->triggers, 0, sizeof(policy->triggers));
    policy->trigger_count = 0;
    for (size_t i = 0; i < json_array_size(value); i++) {
        sj_policy_enter(reader, NULL, i);
        SJ_TRY(read_trigger(reader, &policy->triggers[i], json_array_get(value, i)));
        policy->trigger_count++;
        sj_policy_leave(reader);
    }
    return SJ_OK;
}
