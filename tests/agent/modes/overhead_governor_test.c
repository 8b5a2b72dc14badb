/* Tests the overhead governor on a simulated clock: what it unhooks, and when it hooks again. */
#include "agent/modes/overhead_governor.h"

#include "tests/support/check.h"
#include "tests/support/test_session.h"

#include <unistd.h>

enum { HOT = 5, COLD = 9, CALL_NS = 100 };

#define MS UINT64_C(1000000)

static const uint64_t second_ns = UINT64_C(1000000000);
static uint64_t wall_ns;
static uint64_t cpu_ns;
static unsigned toggles;
static bool last_on;
static uint32_t last_function;
static size_t last_count;
static sj_status reply;

static uint64_t read_clock(clockid_t clock)
{
    return clock == CLOCK_MONOTONIC ? wall_ns : cpu_ns;
}

static sj_status hook(pid_t pid, const uint32_t *functions, size_t count, bool on,
                      sj_unhooked_set *freed, sj_hook_functions_report *report, sj_error *error)
{
    (void)freed;
    (void)report;
    assert_int_equal(pid, getpid());
    toggles++;
    last_on = on;
    last_function = functions[0];
    last_count = count;
    return reply == SJ_OK ? SJ_OK : sj_fail(error, reply, "ptrace is refused");
}

static unsigned method_toggles;
static uint64_t method_cost_ns;
static bool hot_is_muted; /* true: HOT is muted, so its probes remain */
static bool hot_is_rare;
static void (*meanwhile)(void); /* called while methods are changed, unless NULL */

/* Changes HOT, the only method of a runtime. The other functions stay in `change`. */
static sj_status hook_methods(void *context, sj_method_change *change, uint64_t *cost_ns,
                              sj_error *error)
{
    size_t others = 0;
    uint32_t *functions = change->functions;
    (void)context;
    (void)error;
    if (meanwhile != NULL) {
        meanwhile();
    }
    assert_int_equal(change->process, 1);
    assert_int_equal(change->pid, getpid());
    for (size_t i = 0; i < change->count; i++) {
        if (functions[i] == HOT) {
            method_toggles++;
            last_on = change->on;
            *cost_ns = method_cost_ns;
            hot_is_rare = sj_governed_process_is_rare(change->governed, HOT);
            change->muted = hot_is_muted ? 1 : 0;
        } else {
            functions[i] = functions[others];
            functions[others++] = COLD;
        }
    }
    change->count = others;
    return SJ_OK;
}

typedef struct fixture {
    test_session *session;
    sj_overhead_governor *governor;
    sj_governed_process *process;
    sj_unhooked_set *unhooked;
} fixture;

static fixture the;

static int set_up_with(void **state, bool has_methods)
{
    sj_error error = {0};
    wall_ns = second_ns;
    cpu_ns = 0;
    toggles = 0;
    method_toggles = 0;
    method_cost_ns = 0;
    hot_is_muted = false;
    meanwhile = NULL;
    reply = SJ_OK;
    the.session = test_session_open(0);
    const sj_overhead_governor_options options = {.writer = the.session->writer,
                                                  .call_ns = CALL_NS,
                                                  .threadless = true,
                                                  .clock_ns = read_clock,
                                                  .hook_functions = hook,
                                                  .hook_methods =
                                                      has_methods ? hook_methods : NULL};
    assert_int_equal(sj_unhooked_set_new(&the.unhooked), SJ_OK);
    assert_int_equal(sj_overhead_governor_start(&options, &the.governor, &error), SJ_OK);
    sj_overhead_governor_resume(the.governor, 10);
    assert_int_equal(
        sj_overhead_governor_add(the.governor, 1, getpid(), the.unhooked, &the.process), SJ_OK);
    *state = &the;
    return 0;
}

static int set_up(void **state)
{
    return set_up_with(state, false);
}

static int set_up_methods(void **state)
{
    return set_up_with(state, true);
}

static int tear_down(void **state)
{
    fixture *f = *state;
    sj_overhead_governor_stop(f->governor);
    sj_unhooked_set_release(f->unhooked);
    test_session_close(f->session);
    return 0;
}

/* Adds calls of HOT and COLD and `passed_ns` of CPU time, then lets the governor check once.
 * Returns its result. */
static bool run(fixture *f, uint64_t hot, uint64_t cold, uint64_t passed_ns)
{
    uint64_t *calls = sj_governed_process_calls(f->process);
    calls[HOT] += hot;
    calls[COLD] += cold;
    sj_governed_process_count(f->process, (double)(hot + cold), COLD);
    cpu_ns += passed_ns;
    wall_ns += passed_ns;
    return sj_overhead_governor_check(f->governor);
}

static void assert_toggled(unsigned times, uint32_t function, bool on)
{
    assert_int_equal(toggles, times);
    assert_int_equal(last_count, 1);
    assert_int_equal(last_function, function);
    assert_int_equal(last_on, on);
}

static void calls_within_the_budget_stay_hooked(void **state)
{
    assert_false(run(*state, 4000, 100, 10 * MS));
    assert_int_equal(toggles, 0);
}

static void the_most_called_function_is_unhooked(void **state)
{
    fixture *f = *state;
    sj_overhead_governor_counters counters;
    assert_true(run(f, 50000, 1000, 10 * MS));
    assert_toggled(1, HOT, false);
    sj_overhead_governor_get_counters(f->governor, &counters);
    assert_int_equal(counters.unhooked, 1);
    assert_true(counters.overhead_percent > 100); /* 5.1 ms in 4.9 ms of the program's own time */
    assert_int_equal(test_session_read(f->session, SJ_FRAME_DECISION), 1);
    Sojourn__Decision *decision =
        test_session_message(f->session, SJ_FRAME_DECISION, 0, &sojourn__decision__descriptor);
    assert_string_equal(decision->what, "unhook");
    assert_int_equal(decision->function, HOT);
    assert_int_equal(decision->calls, 50000);
    assert_int_equal(decision->budget_ppm, 100000);
    protobuf_c_message_free_unpacked(&decision->base, NULL);
}

static double overhead_of(const fixture *f)
{
    sj_overhead_governor_counters counters;
    sj_overhead_governor_get_counters(f->governor, &counters);
    return counters.overhead_percent;
}

/* 11,000 timed calls cost 1.1 ms. 7,000 untimed and 4,000 timed calls cost 0.75 ms. */
static void calls_without_a_clock_cost_half(void **state)
{
    fixture *f = *state;
    sj_governed_process_untimed(f->process)[HOT] += 7000;
    assert_false(run(f, 11000, 0, 10 * MS));
    assert_int_equal(toggles, 0);
    assert_in_range((uint64_t)(overhead_of(f) * 1000), 8100, 8110); /* 0.75 ms in 9.25 ms */
    assert_true(run(f, 11000, 0, 10 * MS));
    assert_toggled(1, HOT, false);
}

/* The calls cost 8 ms: 5 ms for COLD, which is timed, and 3 ms for HOT, which is called more
 * often. */
static void the_most_expensive_function_is_unhooked(void **state)
{
    fixture *f = *state;
    sj_governed_process_untimed(f->process)[HOT] += 60000;
    assert_true(run(f, 60000, 50000, 98 * MS));
    assert_toggled(1, COLD, false);
}

static void methods_of_a_runtime_are_not_patched(void **state)
{
    fixture *f = *state;
    assert_true(run(f, 50000, 50000, 10 * MS));
    assert_int_equal(method_toggles, 1);
    assert_toggled(1, COLD, false);
    assert_false(run(f, 0, 0, 10 * MS));
}

/* One decision covers the function and the method. */
static void methods_are_recorded_again_when_functions_are_refused(void **state)
{
    fixture *f = *state;
    reply = SJ_EPERM;
    assert_true(run(f, 50000, 50000, 10 * MS));
    assert_int_equal(toggles, 1);
    assert_int_equal(method_toggles, 2);
    assert_true(last_on);
    /* the refused decision */
    assert_int_equal(test_session_read(f->session, SJ_FRAME_DECISION), 1);
}

/* The time that a runtime needs to change methods is paid back before the methods are recorded
 * again. */
static void the_cost_of_changing_methods_is_paid_back_first(void **state)
{
    fixture *f = *state;
    method_cost_ns = 500 * MS; /* takes 5 s of the program's own time to pay back, at 10 % */
    assert_true(run(f, 50000, 1000, 10 * MS));
    assert_int_equal(method_toggles, 1);
    assert_false(run(f, 0, 10, 4000 * MS));
    assert_int_equal(method_toggles, 1);
    assert_true(run(f, 0, 10, 2000 * MS) || run(f, 0, 10, 1000 * MS));
    assert_int_equal(method_toggles, 2);
    assert_true(last_on);
    assert_int_equal(toggles, 0);
}

/* A muted call costs 4 ns, a recorded one 100 ns. A quarter of the 10 % budget is for muted
 * calls. */
static void probes_of_rare_methods_may_stay(void **state)
{
    fixture *f = *state;
    sj_overhead_governor_counters counters;
    hot_is_muted = true;
    assert_true(run(f, 15000, 10, 10 * MS));
    assert_int_equal(method_toggles, 1);
    assert_true(hot_is_rare);
    assert_int_equal(test_session_read(f->session, SJ_FRAME_DECISION), 1);
    Sojourn__Decision *decision =
        test_session_message(f->session, SJ_FRAME_DECISION, 0, &sojourn__decision__descriptor);
    assert_non_null(strstr(decision->reason, "muted"));
    protobuf_c_message_free_unpacked(&decision->base, NULL);
    assert_false(run(f, 0, 10, 900 * MS));
    sj_overhead_governor_get_counters(f->governor, &counters);
    assert_true(counters.overhead_percent > 0.5); /* 0.17 without the muted calls */
}

static void probes_of_frequent_methods_are_removed(void **state)
{
    fixture *f = *state;
    assert_true(run(f, 90000, 10, 10 * MS));
    assert_false(hot_is_rare);
    assert_int_equal(test_session_read(f->session, SJ_FRAME_DECISION), 1);
    Sojourn__Decision *decision =
        test_session_message(f->session, SJ_FRAME_DECISION, 0, &sojourn__decision__descriptor);
    assert_null(strstr(decision->reason, "muted"));
    protobuf_c_message_free_unpacked(&decision->base, NULL);
}

/* The probes of HOT cannot be removed, because its class is hidden. Muted, HOT costs 4 ns a call,
 * which exceeds the whole budget. */
static void costs_that_cannot_be_saved_unhook_no_other_function(void **state)
{
    fixture *f = *state;
    sj_overhead_governor_counters counters;
    hot_is_muted = true;
    assert_true(run(f, 95000, 10, 10 * MS));
    assert_int_equal(method_toggles, 1);
    assert_false(hot_is_rare);
    assert_false(run(f, 0, 4000, 90 * MS)); /* pays for the burst at the beginning */
    assert_false(run(f, 0, 40000, 800 * MS));
    assert_int_equal(toggles, 0);
    sj_overhead_governor_get_counters(f->governor, &counters);
    assert_true(counters.overhead_percent > 10); /* 1.6 without the muted calls */
}

static void let_the_process_go(void)
{
    sj_overhead_governor_counters counters;
    sj_overhead_governor_remove(the.governor, the.process);
    assert_int_equal(
        sj_overhead_governor_add(the.governor, 1, getpid(), the.unhooked, &the.process), SJ_OK);
    sj_overhead_governor_get_counters(the.governor, &counters);
    assert_int_equal(counters.unhooked, 0);
}

static void suspend(void)
{
    assert_false(sj_overhead_governor_suspend(the.governor, MS));
}

/* A suspension fails if methods are still being changed after the caller's limit. */
static void a_suspension_fails_if_methods_are_still_being_changed(void **state)
{
    fixture *f = *state;
    meanwhile = suspend;
    assert_true(run(f, 50000, 1000, 10 * MS));
    assert_int_equal(method_toggles, 1);
    meanwhile = NULL;
    assert_true(sj_overhead_governor_suspend(f->governor, MS));
    assert_false(run(f, 50000, 0, 10 * MS));
}

/* The drain does not wait for changes of methods. If the process ends meanwhile, the governor sends
 * no decision, but counts the cost. */
static void processes_come_and_go_while_methods_are_changed(void **state)
{
    fixture *f = *state;
    sj_overhead_governor_counters counters;
    meanwhile = let_the_process_go;
    method_cost_ns = 40 * MS;
    assert_false(run(f, 50000, 1000, 10 * MS));
    assert_int_equal(method_toggles, 1);
    assert_int_equal(test_session_read(f->session, SJ_FRAME_DECISION), 0);
    sj_overhead_governor_get_counters(f->governor, &counters);
    assert_int_equal(counters.unhooked, 0);
    assert_true(counters.overhead_percent > 100);
    meanwhile = NULL;
    method_cost_ns = 0;
    assert_true(run(f, 50000, 1000, 10 * MS)); /* the new process */
    assert_int_equal(method_toggles, 2);
    assert_int_equal(test_session_read(f->session, SJ_FRAME_DECISION), 1);
}

static void too_short_an_interval_decides_nothing(void **state)
{
    assert_false(run(*state, 50000, 0, MS / 4));
    assert_int_equal(toggles, 0);
}

/* The pause is one second. The saved time must also pay for the attempt. */
static void a_function_is_hooked_again_after_its_pause(void **state)
{
    fixture *f = *state;
    assert_true(run(f, 50000, 1000, 10 * MS));
    assert_false(run(f, 0, 10, 900 * MS));
    assert_int_equal(toggles, 1);
    assert_true(run(f, 0, 10, 200 * MS));
    assert_toggled(2, HOT, true);
}

static void each_failed_attempt_doubles_the_pause(void **state)
{
    fixture *f = *state;
    assert_true(run(f, 50000, 1000, 10 * MS));
    assert_true(run(f, 0, 10, 1100 * MS));
    assert_true(run(f, 2000000, 0, 400 * MS)); /* costs more than was saved */
    assert_toggled(3, HOT, false);
    assert_false(run(f, 0, 10, 1900 * MS));
    assert_int_equal(toggles, 3);
    /* The debt of the burst is paid first. */
    assert_true(run(f, 0, 10, 3000 * MS));
    assert_toggled(4, HOT, true);
}

static void a_refusal_is_reported_and_not_repeated_at_once(void **state)
{
    fixture *f = *state;
    sj_overhead_governor_counters counters;
    reply = SJ_EPERM;
    assert_true(run(f, 50000, 0, 10 * MS));
    assert_false(run(f, 50000, 0, 10 * MS));
    assert_int_equal(toggles, 1);
    wall_ns += 5 * second_ns;
    assert_true(run(f, 50000, 0, 10 * MS));
    assert_int_equal(toggles, 2);
    sj_overhead_governor_get_counters(f->governor, &counters);
    assert_int_equal(counters.failures, 2);
    assert_int_equal(counters.unhooked, 0);
    assert_int_equal(test_session_read(f->session, SJ_FRAME_DECISION), 2);
}

static void a_suspended_governor_traces_no_process(void **state)
{
    fixture *f = *state;
    assert_true(sj_overhead_governor_suspend(f->governor, MS));
    assert_false(run(f, 50000, 0, 10 * MS));
    assert_int_equal(toggles, 0);
    sj_overhead_governor_resume(f->governor, 10); /* earlier costs are forgotten */
    assert_false(run(f, 100, 0, 10 * MS));
    assert_int_equal(toggles, 0);
    assert_true(run(f, 50000, 0, 10 * MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(calls_within_the_budget_stay_hooked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_most_called_function_is_unhooked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(calls_without_a_clock_cost_half, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_most_expensive_function_is_unhooked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(methods_of_a_runtime_are_not_patched, set_up_methods,
                                        tear_down),
        cmocka_unit_test_setup_teardown(methods_are_recorded_again_when_functions_are_refused,
                                        set_up_methods, tear_down),
        cmocka_unit_test_setup_teardown(the_cost_of_changing_methods_is_paid_back_first,
                                        set_up_methods, tear_down),
        cmocka_unit_test_setup_teardown(probes_of_rare_methods_may_stay, set_up_methods, tear_down),
        cmocka_unit_test_setup_teardown(probes_of_frequent_methods_are_removed, set_up_methods,
                                        tear_down),
        cmocka_unit_test_setup_teardown(costs_that_cannot_be_saved_unhook_no_other_function,
                                        set_up_methods, tear_down),
        cmocka_unit_test_setup_teardown(a_suspension_fails_if_methods_are_still_being_changed,
                                        set_up_methods, tear_down),
        cmocka_unit_test_setup_teardown(processes_come_and_go_while_methods_are_changed,
                                        set_up_methods, tear_down),
        cmocka_unit_test_setup_teardown(too_short_an_interval_decides_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_function_is_hooked_again_after_its_pause, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(each_failed_attempt_doubles_the_pause, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_refusal_is_reported_and_not_repeated_at_once, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_suspended_governor_traces_no_process, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
