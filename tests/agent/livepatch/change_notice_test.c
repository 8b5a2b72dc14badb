/* A change of hooks must be in the set of unhooked functions before the threads run again. */
#include "agent/livepatch/remote_agent.h"
#include "agent/livepatch/toggle.h"
#include "agent/livepatch/transition.h"
#include "agent/ptrace/loader_lock.h"
#include "tests/support/check.h"

#include <unistd.h>

enum { FREED = 5, HOOKED = 6, FUNCTIONS = 7 };

static sj_unhooked_set *freed;
static uint32_t changes_at_resumption;
static bool is_free_at_resumption;
static bool other_is_free_at_resumption;
static bool is_free_at_change; /* true if FREED is free at the first change */
static sj_hook_change written[2];
static uint32_t refused;
static bool hooking_fails;

sj_status __wrap_sj_tracee_open(pid_t pid, sj_tracee *target, sj_error *error);
sj_status __wrap_sj_tracee_open(pid_t pid, sj_tracee *target, sj_error *error)
{
    (void)error;
    *target = (sj_tracee){.pid = pid};
    return SJ_OK;
}

void __wrap_sj_tracee_close(sj_tracee *target);
void __wrap_sj_tracee_close(sj_tracee *target)
{
    (void)target;
}

void __wrap_sj_tracee_resume_all(sj_tracee *target);
void __wrap_sj_tracee_resume_all(sj_tracee *target)
{
    (void)target;
    changes_at_resumption = sj_unhooked_set_changes(freed);
    is_free_at_resumption = sj_unhooked_set_is_free(freed, FREED, changes_at_resumption);
    other_is_free_at_resumption = sj_unhooked_set_is_free(freed, HOOKED, changes_at_resumption);
}

sj_status __wrap_sj_remote_agent_find(const sj_tracee *target, sj_remote_agent *agent);
sj_status __wrap_sj_remote_agent_find(const sj_tracee *target, sj_remote_agent *agent)
{
    static sj_remote_table table = {.module.change_count = 2, .changes = written};
    (void)target;
    agent->tables = &table;
    agent->table_count = 1;
    return SJ_OK;
}

void __wrap_sj_remote_agent_deinit(sj_remote_agent *agent);
void __wrap_sj_remote_agent_deinit(sj_remote_agent *agent)
{
    (void)agent;
}

sj_status __wrap_sj_remote_agent_stop_current(sj_tracee *target, sj_remote_agent *agent,
                                              uint64_t *start_ns, sj_error *error);
sj_status __wrap_sj_remote_agent_stop_current(sj_tracee *target, sj_remote_agent *agent,
                                              uint64_t *start_ns, sj_error *error)
{
    (void)target;
    (void)agent;
    (void)error;
    *start_ns = 1;
    return SJ_OK;
}

sj_status __wrap_sj_remote_agent_change(sj_tracee *target, sj_remote_agent *agent, bool on,
                                        sj_remote_agent_wants wants, void *context,
                                        sj_text_patch_report *report);
sj_status __wrap_sj_remote_agent_change(sj_tracee *target, sj_remote_agent *agent, bool on,
                                        sj_remote_agent_wants wants, void *context,
                                        sj_text_patch_report *report)
{
    (void)target;
    (void)agent;
    if (!on) {
        is_free_at_change = sj_unhooked_set_is_free(freed, FREED, UINT32_MAX);
    }
    if (on && hooking_fails) {
        return SJ_EAGAIN;
    }
    for (size_t i = 0; i < 2; i++) {
        if (wants(context, &written[i])) {
            written[i].written = on;
        }
    }
    *report = (sj_text_patch_report){.changed = 1, .refused = refused};
    return SJ_OK;
}

uint64_t __wrap_sj_loader_lock_find(const sj_tracee *target);
uint64_t __wrap_sj_loader_lock_find(const sj_tracee *target)
{
    (void)target;
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    written[0] = (sj_hook_change){.function = FREED, .written = 1};
    written[1] = (sj_hook_change){.function = HOOKED, .written = 0};
    refused = 0;
    hooking_fails = false;
    is_free_at_change = false;
    assert_int_equal(sj_unhooked_set_new(&freed), SJ_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sj_unhooked_set_release(freed);
    return 0;
}

static void toggle(uint32_t function, bool on)
{
    sj_hook_functions_report report;
    sj_error error = {0};
    assert_int_equal(sj_hook_functions(getpid(), &function, 1, on, freed, &report, &error), SJ_OK);
}

static void functions_are_reported_unhooked_before_threads_resume(void **state)
{
    (void)state;
    toggle(FREED, false);
    assert_true(is_free_at_change);
    assert_int_equal(changes_at_resumption, 1);
    assert_true(is_free_at_resumption);
    toggle(FREED, true);
    assert_int_equal(changes_at_resumption, 1);
    assert_false(is_free_at_resumption);
}

/* Calls of these functions may or may not have an exit. */
static void functions_whose_unhooking_failed_are_reported_as_gaps(void **state)
{
    (void)state;
    refused = 1;
    toggle(FREED, false);
    assert_int_equal(changes_at_resumption, 1);
    assert_false(is_free_at_resumption);
}

static sj_status reselect(void)
{
    uint8_t states[FUNCTIONS] = {0};
    const sj_function_states wanted = {.states = states, .count = FUNCTIONS};
    static const uint32_t was_free = HOOKED;
    sj_transition_report report;
    sj_error error = {0};
    states[FREED] = SJ_FUNCTION_UNWANTED;
    states[HOOKED] = SJ_FUNCTION_WANTED;
    sj_unhooked_set_add(freed, &was_free, 1, 1);
    const sj_status status =
        sj_transition_process(NULL, 1, getpid(), &wanted, freed, &report, &error);
    assert_int_equal(report.freed_count, 1);
    assert_int_equal(report.hooked_count, hooking_fails ? 0 : 1);
    assert_int_equal(report.missed_count, 0); /* The count is unknown after a failure. */
    sj_transition_report_deinit(&report);
    return status;
}

static void another_selection_is_reported_before_threads_resume(void **state)
{
    (void)state;
    assert_int_equal(reselect(), SJ_OK);
    assert_int_equal(changes_at_resumption, 2);
    assert_true(is_free_at_change); /* Threads run for a moment before the next change. */
    assert_true(is_free_at_resumption);
    assert_false(other_is_free_at_resumption);
}

static void functions_unhooked_by_a_failed_selection_are_reported(void **state)
{
    (void)state;
    hooking_fails = true;
    assert_int_equal(reselect(), SJ_EAGAIN);
    assert_int_equal(changes_at_resumption, 2);
    assert_true(is_free_at_resumption);
    assert_true(other_is_free_at_resumption);
}

static void renamed_calls_follow_the_function_that_is_hooked(void **state)
{
    enum { BY_RECEIVER = 1000, FAR = 1 << 28 };
    static const uint32_t function = FREED;
    sj_unhooked_set_since since = {.freed = freed};
    (void)state;
    sj_unhooked_set_follow(freed, BY_RECEIVER, FREED);
    sj_unhooked_set_follow(freed, FAR, FREED);
    sj_unhooked_set_follow(freed, HOOKED, FAR);
    sj_unhooked_set_add(freed, &function, 1, 10);
    assert_true(sj_unhooked_set_has(&since, BY_RECEIVER));
    assert_true(sj_unhooked_set_is_free(freed, BY_RECEIVER, 1));
    assert_false(sj_unhooked_set_has(&since, HOOKED));
    assert_false(sj_unhooked_set_is_free(freed, FAR, 1));
    sj_unhooked_set_remove(freed, &function, 1);
    assert_false(sj_unhooked_set_is_free(freed, BY_RECEIVER, 1));
}

static void changes_have_their_own_times(void **state)
{
    static const uint32_t function = FREED;
    enum { MANY = 1000 };
    (void)state;
    assert_int_equal(sj_unhooked_set_changes_until(freed, 0), 0);
    for (uint32_t i = 1; i <= MANY; i++) {
        sj_unhooked_set_add(freed, &function, 1, UINT64_C(10) * i);
    }
    assert_int_equal(sj_unhooked_set_time(freed, MANY), 10 * MANY);
    assert_int_equal(sj_unhooked_set_time(freed, MANY - 5), 10 * (MANY - 5));
    assert_true(sj_unhooked_set_time(freed, 1) > 10); /* The first time was dropped. */
    assert_int_equal(sj_unhooked_set_changes_until(freed, 10 * (MANY - 5) + 3), MANY - 5);
    assert_int_equal(sj_unhooked_set_changes_until(freed, UINT64_MAX), MANY);
    assert_int_equal(sj_unhooked_set_changes_until(freed, 5), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(functions_are_reported_unhooked_before_threads_resume,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(functions_whose_unhooking_failed_are_reported_as_gaps,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_selection_is_reported_before_threads_resume, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(functions_unhooked_by_a_failed_selection_are_reported,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(renamed_calls_follow_the_function_that_is_hooked, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(changes_have_their_own_times, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
