#include "agent/modes/triggers.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct trigger_state {
    uint64_t window_ticks; /* start of the current window of `within_ns` */
    uint64_t count;        /* occurrences in the window; NTH_CALL: all calls so far */
    uint64_t fired;        /* number of firings */
    uint64_t fired_ticks;  /* time of the last firing */
    uint64_t suppressed;   /* firings suppressed since the last report */
} trigger_state;

struct sj_triggers {
    sj_triggers_options options;
    bool paused;
    trigger_state states[SJ_POLICY_TRIGGERS];
};

sj_status sj_triggers_new(const sj_triggers_options *options, sj_triggers **triggers)
{
    sj_triggers *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    made->options = *options;
    made->paused = options->policy->begins_paused;
    *triggers = made;
    return SJ_OK;
}

void sj_triggers_free(sj_triggers *triggers)
{
    free(triggers);
}

bool sj_triggers_is_paused(const sj_triggers *triggers)
{
    return triggers->paused;
}

void sj_triggers_pause(sj_triggers *triggers, bool paused)
{
    triggers->paused = paused;
}

static uint64_t to_ns(const sj_triggers *triggers, uint64_t ticks)
{
    return (uint64_t)((double)ticks * triggers->options.ns_per_tick);
}

static void list_actions(unsigned actions, char *text, size_t capacity)
{
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < SJ_TRIGGER_ACTIONS; i++) {
        if ((actions >> i & 1) != 0) {
            const int written = snprintf(text + used, capacity - used, "%s%s", used != 0 ? " " : "",
                                         sj_trigger_action_text(i));
            used += written > 0 ? (size_t)written : 0;
        }
    }
}

static void act(sj_triggers *triggers, const sj_trigger *trigger, const char *subject,
                uint64_t now_ticks, Sojourn__Trigger *message, sj_session_id *child)
{
    char cause[160];
    snprintf(cause, sizeof(cause), "%s %.120s", sj_trigger_event_text(trigger->event), subject);
    if ((trigger->actions & SJ_ACTION_START) != 0) {
        triggers->paused = false;
    }
    if ((trigger->actions & SJ_ACTION_STOP) != 0) {
        triggers->paused = true;
    }
    if ((trigger->actions & SJ_ACTION_MARK) != 0) {
        (void)!sj_frame_writer_mark(triggers->options.writer, cause, false, now_ticks,
                                    message->thread, "trigger");
    }
    if ((trigger->actions & SJ_ACTION_STACKS) != 0 && triggers->options.stacks != NULL) {
        /* The sampler drops the request if too many are pending. The trigger is still reported. */
        (void)!sj_stack_sampler_request(triggers->options.stacks, cause);
    }
    if ((trigger->actions & SJ_ACTION_DUMP) != 0 && triggers->options.flight != NULL &&
        sj_flight_recorder_dump(triggers->options.flight, now_ticks, cause, child) == SJ_OK) {
        message->child_session_id.data = child->bytes;
        message->child_session_id.len = SJ_SESSION_ID_BYTES;
    }
}

static void send(sj_triggers *triggers, size_t place, Sojourn__Trigger *message)
{
    trigger_state *state = &triggers->states[place];
    message->place = (uint32_t)place;
    message->event =
        (char *)(uintptr_t)sj_trigger_event_text(triggers->options.policy->triggers[place].event);
    message->suppressed = state->suppressed;
    state->suppressed = 0;
    (void)!sj_frame_writer_trigger(triggers->options.writer, message);
}

/* Carries out the actions of a trigger and reports the firing. If the trigger has fired too
 * recently or too often, only counts a suppressed firing. */
static void fire(sj_triggers *triggers, size_t place, const char *subject, uint64_t value,
                 uint64_t now_ticks, uint64_t thread)
{
    const sj_trigger *trigger = &triggers->options.policy->triggers[place];
    trigger_state *state = &triggers->states[place];
    char actions[64];
    sj_session_id child;
    if ((trigger->most != 0 && state->fired >= trigger->most) ||
        (state->fired != 0 &&
         to_ns(triggers, now_ticks - state->fired_ticks) < trigger->pause_ns)) {
        state->suppressed++;
        return;
    }
    Sojourn__Trigger message = SOJOURN__TRIGGER__INIT;
    list_actions(trigger->actions, actions, sizeof(actions));
    message.ticks = now_ticks;
    message.thread = thread;
    message.subject = (char *)(uintptr_t)subject;
    message.value = value;
    message.actions = actions;
    state->fired++;
    state->fired_ticks = now_ticks;
    act(triggers, trigger, subject, now_ticks, &message, &child);
    send(triggers, place, &message);
}

void sj_triggers_finish(sj_triggers *triggers, uint64_t now_ticks)
{
    for (size_t i = 0; i < triggers->options.policy->trigger_count; i++) {
        if (triggers->states[i].suppressed != 0) {
            Sojourn__Trigger message = SOJOURN__TRIGGER__INIT;
            message.ticks = now_ticks;
            send(triggers, i, &message);
        }
    }
}

/* Counts one occurrence. Returns true if it is number `times` within the window, and then starts a
 * new count. */
static bool count_in_window(sj_triggers *triggers, const sj_trigger *trigger, trigger_state *state,
                            uint64_t now_ticks)
{
    if (state->count == 0 ||
        to_ns(triggers, now_ticks - state->window_ticks) > trigger->within_ns) {
        state->window_ticks = now_ticks;
        state->count = 0;
    }
    state->count++;
    if (state->count < trigger->times) {
        return false;
    }
    state->count = 0;
    return true;
}

static bool is_met(sj_triggers *triggers, size_t place, uint64_t duration_ticks, uint64_t now_ticks)
{
    const sj_trigger *trigger = &triggers->options.policy->triggers[place];
    trigger_state *state = &triggers->states[place];
    switch (trigger->event) {
    case SJ_TRIGGER_SLOW_CALL:
        return to_ns(triggers, duration_ticks) > trigger->limit_ns;
    case SJ_TRIGGER_JANK:
        return to_ns(triggers, duration_ticks) > trigger->limit_ns &&
               count_in_window(triggers, trigger, state, now_ticks);
    case SJ_TRIGGER_RATE:
        return count_in_window(triggers, trigger, state, now_ticks);
    case SJ_TRIGGER_NTH_CALL:
        return ++state->count == trigger->times;
    default:
        return true;
    }
}

void sj_triggers_call(sj_triggers *triggers, uint32_t bits, uint64_t duration_ticks,
                      uint64_t now_ticks, uint64_t thread)
{
    while (bits != 0) {
        const size_t place = (size_t)__builtin_ctz(bits);
        const sj_pattern *subject = &triggers->options.policy->triggers[place].subject;
        bits &= bits - 1;
        if (is_met(triggers, place, duration_ticks, now_ticks)) {
            fire(triggers, place, subject->text != NULL ? subject->text : "", duration_ticks,
                 now_ticks, thread);
        }
    }
}

uint32_t sj_triggers_overdue(sj_triggers *triggers, uint32_t bits, uint64_t age_ticks,
                             uint64_t now_ticks, uint64_t thread)
{
    uint32_t overdue = 0;
    for (uint32_t left = bits; left != 0; left &= left - 1) {
        const size_t place = (size_t)__builtin_ctz(left);
        const sj_trigger *trigger = &triggers->options.policy->triggers[place];
        const bool is_late = to_ns(triggers, age_ticks) > trigger->limit_ns;
        overdue |= trigger->event == SJ_TRIGGER_JANK && is_late ? left & -left : 0;
    }
    sj_triggers_call(triggers, overdue, age_ticks, now_ticks, thread);
    return overdue;
}

void sj_triggers_event(sj_triggers *triggers, sj_trigger_event event, const char *subject,
                       uint64_t value_ticks, uint64_t now_ticks, uint64_t thread)
{
    const sj_policy *policy = triggers->options.policy;
    for (size_t i = 0; i < policy->trigger_count; i++) {
        const sj_trigger *trigger = &policy->triggers[i];
        if (trigger->event != event) {
            continue;
        }
        /* SJ_TRIGGER_JANK events are frame ticks. Only triggers without function and loop get them;
         * sj_triggers_call and sj_triggers_loop serve the others. */
        const bool is_named =
            event == SJ_TRIGGER_JANK
                ? trigger->subject.text == NULL && trigger->loop.text == NULL
                : trigger->subject.text == NULL || sj_pattern_matches(&trigger->subject, subject);
        if (is_named && is_met(triggers, i, value_ticks, now_ticks)) {
            fire(triggers, i, subject, value_ticks, now_ticks, thread);
        }
    }
}

void sj_triggers_loop(sj_triggers *triggers, const char *thread_name, uint64_t duration_ticks,
                      uint64_t now_ticks, uint64_t thread, uint32_t *judged)
{
    const sj_policy *policy = triggers->options.policy;
    for (size_t i = 0; i < policy->trigger_count; i++) {
        const sj_trigger *trigger = &policy->triggers[i];
        if (trigger->loop.text == NULL || (*judged >> i & 1) != 0 ||
            to_ns(triggers, duration_ticks) <= trigger->limit_ns ||
            !sj_pattern_matches(&trigger->loop, thread_name)) {
            continue;
        }
        *judged |= UINT32_C(1) << i;
        if (is_met(triggers, i, duration_ticks, now_ticks)) {
            fire(triggers, i, thread_name, duration_ticks, now_ticks, thread);
        }
    }
}
