/* Tests when triggers fire, how often, and what they do. */
#include "agent/modes/triggers.h"

#include "tests/support/check.h"
#include "tests/support/test_session.h"

static test_session *session;
static sj_triggers *triggers;
static sj_policy policy;

static int set_up(void **state)
{
    (void)state;
    session = test_session_open(0);
    policy = (sj_policy){0};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sj_triggers_free(triggers);
    test_session_close(session);
    return 0;
}

/* Starts with one trigger. A tick is a nanosecond. */
static void begin(sj_trigger trigger)
{
    policy.triggers[0] = trigger;
    policy.trigger_count = 1;
    const sj_triggers_options options = {
        .policy = &policy, .writer = session->writer, .ns_per_tick = 1};
    assert_int_equal(sj_triggers_new(&options, &triggers), SJ_OK);
}

static void call(uint64_t duration, uint64_t now)
{
    sj_triggers_call(triggers, 1, duration, now, 7);
}

static size_t fired(void)
{
    return test_session_read(session, SJ_FRAME_TRIGGER);
}

static void only_calls_beyond_the_limit_fire(void **state)
{
    (void)state;
    begin((sj_trigger){.event = SJ_TRIGGER_SLOW_CALL, .limit_ns = 100, .actions = SJ_ACTION_MARK});
    call(100, 1000);
    assert_int_equal(fired(), 0);
    call(101, 2000);
    assert_int_equal(fired(), 1);
    Sojourn__Trigger *message =
        test_session_message(session, SJ_FRAME_TRIGGER, 0, &sojourn__trigger__descriptor);
    assert_int_equal(message->ticks, 2000);
    assert_int_equal(message->thread, 7);
    assert_int_equal(message->value, 101);
    assert_string_equal(message->event, "slow_call");
    assert_string_equal(message->actions, "mark");
    protobuf_c_message_free_unpacked(&message->base, NULL);
    assert_int_equal(test_session_read(session, SJ_FRAME_MARK), 1);
}

static void the_pause_holds_triggers_back_and_counts_them(void **state)
{
    (void)state;
    begin((sj_trigger){.event = SJ_TRIGGER_SLOW_CALL, .limit_ns = 1, .pause_ns = 1000});
    call(5, 100);
    call(5, 500);
    call(5, 1099);
    assert_int_equal(fired(), 1);
    call(5, 1100);
    assert_int_equal(fired(), 2);
    Sojourn__Trigger *message =
        test_session_message(session, SJ_FRAME_TRIGGER, 1, &sojourn__trigger__descriptor);
    assert_int_equal(message->suppressed, 2);
    protobuf_c_message_free_unpacked(&message->base, NULL);
}

static void triggers_beyond_their_most_are_reported_at_the_end(void **state)
{
    (void)state;
    begin((sj_trigger){.event = SJ_TRIGGER_SLOW_CALL, .limit_ns = 1, .most = 1});
    call(5, 100);
    call(5, 200);
    assert_int_equal(fired(), 1);
    sj_triggers_finish(triggers, 300);
    assert_int_equal(fired(), 2);
    sj_triggers_finish(triggers, 400); /* nothing has happened since */
    assert_int_equal(fired(), 2);
}

static void a_rate_counts_within_its_window(void **state)
{
    (void)state;
    begin((sj_trigger){.event = SJ_TRIGGER_RATE, .times = 3, .within_ns = 100});
    call(0, 0);
    call(0, 60);
    call(0, 170); /* more than a window later */
    call(0, 180);
    assert_int_equal(fired(), 0);
    call(0, 190);
    assert_int_equal(fired(), 1);
}

static void the_nth_call_fires_once(void **state)
{
    (void)state;
    begin((sj_trigger){.event = SJ_TRIGGER_NTH_CALL, .times = 2});
    for (uint64_t i = 0; i < 5; i++) {
        call(0, i);
        assert_int_equal(fired(), i >= 1);
    }
}

static void events_fire_by_their_kind_and_name(void **state)
{
    (void)state;
    begin((sj_trigger){.event = SJ_TRIGGER_MARK, .subject = {.text = (char *)(uintptr_t) "load"}});
    sj_triggers_event(triggers, SJ_TRIGGER_COMMAND, "load", 0, 10, 0);
    sj_triggers_event(triggers, SJ_TRIGGER_MARK, "save", 0, 20, 0);
    assert_int_equal(fired(), 0);
    sj_triggers_event(triggers, SJ_TRIGGER_MARK, "load", 0, 30, 0);
    assert_int_equal(fired(), 1);
}

static void start_and_stop_pause_the_recording(void **state)
{
    (void)state;
    policy.begins_paused = true;
    begin((sj_trigger){.event = SJ_TRIGGER_APP, .actions = SJ_ACTION_START});
    assert_true(sj_triggers_is_paused(triggers));
    sj_triggers_event(triggers, SJ_TRIGGER_APP, "", 0, 10, 0);
    assert_false(sj_triggers_is_paused(triggers));
    policy.triggers[0].actions = SJ_ACTION_STOP;
    sj_triggers_event(triggers, SJ_TRIGGER_APP, "", 0, 20, 0);
    assert_true(sj_triggers_is_paused(triggers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_calls_beyond_the_limit_fire, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_pause_holds_triggers_back_and_counts_them, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(triggers_beyond_their_most_are_reported_at_the_end, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_rate_counts_within_its_window, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_nth_call_fires_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(events_fire_by_their_kind_and_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(start_and_stop_pause_the_recording, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
