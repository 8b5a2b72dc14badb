/* Applies another selection to a process. The test plays the agent. */
#include "agent/livepatch/transition.h"

#include "agent/livepatch/remote_agent.h"
#include "agent/ptrace/loader_lock.h"
#include "agent/ptrace/safepoint.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { UNHOOK = 2, HOOK = 3, UNPLANNED = 4, STUCK = 5, FUNCTIONS = 6 };

static sj_hook_change changes[3];
static sj_remote_table table;
static unsigned requests;
static unsigned reviews; /* Reviews that have begun and not ended. */
static sj_status request_reply;
static uint32_t planned; /* The function for which the agent makes a hook on request. */
static bool finds_agent;

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

/* The traced process is the test itself. */
sj_status __wrap_sj_tracee_write(const sj_tracee *target, uint64_t address, const void *bytes,
                                 size_t size);
sj_status __wrap_sj_tracee_write(const sj_tracee *target, uint64_t address, const void *bytes,
                                 size_t size)
{
    (void)target;
    memmove((void *)(uintptr_t)address, bytes, size);
    return SJ_OK;
}

void __wrap_sj_tracee_resume_all(sj_tracee *target);
void __wrap_sj_tracee_resume_all(sj_tracee *target)
{
    (void)target;
}

sj_status __wrap_sj_remote_agent_find(const sj_tracee *target, sj_remote_agent *agent);
sj_status __wrap_sj_remote_agent_find(const sj_tracee *target, sj_remote_agent *agent)
{
    (void)target;
    agent->tables = &table;
    agent->table_count = 1;
    return finds_agent ? SJ_OK : SJ_ENOTFOUND;
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
    for (size_t i = 0; i < table.module.change_count; i++) {
        const uint32_t function = changes[i].function;
        if (function != STUCK && function != SJ_HOOK_REPLACED && wants(context, &changes[i])) {
            changes[i].written = on;
        }
    }
    *report = (sj_text_patch_report){0};
    return SJ_OK;
}

uint64_t __wrap_sj_loader_lock_find(const sj_tracee *target);
uint64_t __wrap_sj_loader_lock_find(const sj_tracee *target)
{
    (void)target;
    return 0;
}

sj_status __wrap_sj_unwinder_new(const sj_tracee *target, sj_unwinder **unwinder);
sj_status __wrap_sj_unwinder_new(const sj_tracee *target, sj_unwinder **unwinder)
{
    (void)target;
    *unwinder = NULL;
    return SJ_OK;
}

sj_status __wrap_sj_safepoint_find(sj_tracee *target, sj_unwinder *unwinder, size_t *thread);
sj_status __wrap_sj_safepoint_find(sj_tracee *target, sj_unwinder *unwinder, size_t *thread)
{
    (void)target;
    (void)unwinder;
    *thread = 0;
    return SJ_OK;
}

sj_status __wrap_sj_remote_agent_call(sj_tracee *target, const sj_remote_agent *agent,
                                      size_t thread, const char *function);
sj_status __wrap_sj_remote_agent_call(sj_tracee *target, const sj_remote_agent *agent,
                                      size_t thread, const char *function)
{
    (void)target;
    (void)agent;
    (void)thread;
    assert_string_equal(function, SJ_AGENT_STATE_TRANSITION_REQUEST);
    assert_int_equal(reviews, 1);
    requests++;
    if (request_reply == SJ_OK) {
        changes[2] = (sj_hook_change){.function = planned};
        table.module.change_count = 3;
    }
    return request_reply;
}

void __wrap_sj_registry_begin_review(sj_registry *registry, uint64_t process,
                                     const uint8_t *prepared, uint32_t count);
void __wrap_sj_registry_begin_review(sj_registry *registry, uint64_t process,
                                     const uint8_t *prepared, uint32_t count)
{
    (void)registry;
    (void)process;
    (void)count;
    assert_int_equal(prepared[HOOK], changes[1].function == HOOK);
    reviews++;
}

void __wrap_sj_registry_end_review(sj_registry *registry);
void __wrap_sj_registry_end_review(sj_registry *registry)
{
    (void)registry;
    reviews--;
}

static int set_up(void **state)
{
    (void)state;
    changes[0] = (sj_hook_change){.function = UNHOOK, .written = 1};
    changes[1] = (sj_hook_change){.function = HOOK};
    table = (sj_remote_table){.module.change_count = 2, .changes = changes};
    requests = 0;
    reviews = 0;
    request_reply = SJ_OK;
    planned = UNPLANNED;
    finds_agent = true;
    return 0;
}

static sj_status change(uint32_t wanted, uint32_t unwanted, sj_transition_report *report)
{
    uint8_t states[FUNCTIONS] = {0};
    const sj_function_states selection = {.states = states, .count = FUNCTIONS};
    sj_error error = {0};
    states[wanted] = SJ_FUNCTION_WANTED;
    states[unwanted] = SJ_FUNCTION_UNWANTED;
    return sj_transition_process(NULL, 1, getpid(), &selection, NULL, report, &error);
}

static void prepared_functions_need_no_request(void **state)
{
    sj_transition_report report;
    (void)state;
    assert_int_equal(change(HOOK, UNHOOK, &report), SJ_OK);
    assert_int_equal(requests, 0);
    assert_int_equal(report.hooked_count, 1);
    assert_int_equal(report.freed_count, 1);
    assert_int_equal(report.missed_count, 0);
    assert_int_equal(changes[0].written, 0);
    assert_int_equal(changes[1].written, 1);
    sj_transition_report_deinit(&report);
}

static void unplanned_functions_are_requested_and_hooked(void **state)
{
    sj_transition_report report;
    (void)state;
    assert_int_equal(change(UNPLANNED, UNHOOK, &report), SJ_OK);
    assert_int_equal(requests, 1);
    assert_int_equal(reviews, 0);
    assert_int_equal(report.hooked_count, 1);
    assert_int_equal(changes[2].written, 1);
    sj_transition_report_deinit(&report);
}

static void functions_that_cannot_be_prepared_are_reported_and_others_changed(void **state)
{
    sj_transition_report report;
    (void)state;
    request_reply = SJ_ETIMEDOUT;
    assert_int_equal(change(UNPLANNED, UNHOOK, &report), SJ_ETIMEDOUT);
    assert_int_equal(reviews, 0);
    assert_int_equal(report.freed_count, 1);
    assert_int_equal(report.missed_count, 1);
    assert_int_equal(report.missed[0], UNPLANNED);
    sj_transition_report_deinit(&report);
}

static void hooks_that_cannot_be_removed_are_counted(void **state)
{
    sj_transition_report report;
    (void)state;
    changes[0].function = STUCK;
    assert_int_equal(change(HOOK, STUCK, &report), SJ_OK);
    assert_int_equal(report.kept_count, 1);
    assert_int_equal(report.freed_count, 0);
    sj_transition_report_deinit(&report);
}

static void a_process_without_an_agent_is_refused(void **state)
{
    sj_transition_report report;
    (void)state;
    finds_agent = false;
    assert_int_equal(change(HOOK, UNHOOK, &report), SJ_ENOTFOUND);
    assert_int_equal(changes[0].written, 1);
    sj_transition_report_deinit(&report);
}

/* Renews the hook of `function` as `renewal` says. HOOK is the only wanted function. */
static sj_status renew(uint32_t function, sj_renewal renewal, bool asks_agents,
                       sj_transition_report *report)
{
    uint8_t states[FUNCTIONS] = {0};
    uint8_t renewed[FUNCTIONS] = {0};
    const sj_function_states selection = {.states = states,
                                          .count = FUNCTIONS,
                                          .renewed = renewed,
                                          .renewed_count = renewal != SJ_RENEWAL_NONE,
                                          .asks_agents = asks_agents};
    sj_error error = {0};
    states[HOOK] = SJ_FUNCTION_WANTED;
    renewed[function] = (uint8_t)renewal;
    return sj_transition_process(NULL, 1, getpid(), &selection, NULL, report, &error);
}

static void agents_are_asked_for_changes_even_if_no_hook_is_missing(void **state)
{
    sj_transition_report report;
    (void)state;
    assert_int_equal(renew(HOOK, SJ_RENEWAL_NONE, false, &report), SJ_OK);
    assert_int_equal(requests, 0);
    sj_transition_report_deinit(&report);
    assert_int_equal(renew(HOOK, SJ_RENEWAL_NONE, true, &report), SJ_OK);
    assert_int_equal(requests, 1);
    sj_transition_report_deinit(&report);
    assert_int_equal(renew(UNPLANNED, SJ_RENEWAL_CALLER, false, &report), SJ_OK);
    assert_int_equal(requests, 2);
    assert_int_equal(report.stale_count, 0);
    sj_transition_report_deinit(&report);
}

static void hooks_that_cannot_be_renewed_are_counted(void **state)
{
    sj_transition_report report;
    (void)state;
    changes[0] = (sj_hook_change){.function = STUCK, .written = 1};
    changes[1].written = 1;
    assert_int_equal(renew(STUCK, SJ_RENEWAL_VALUES, false, &report), SJ_OK);
    assert_int_equal(report.stale_count, 1);
    assert_int_equal(changes[0].function, STUCK);
    sj_transition_report_deinit(&report);
}

static void a_renewal_that_has_failed_halfway_is_made_up_for(void **state)
{
    sj_transition_report report;
    (void)state;
    table.module.changes = changes;
    changes[1].written = 1;
    planned = HOOK;
    request_reply = SJ_ETIMEDOUT;
    assert_int_equal(renew(HOOK, SJ_RENEWAL_VALUES, false, &report), SJ_ETIMEDOUT);
    assert_int_equal(changes[1].function, SJ_HOOK_REPLACED);
    assert_int_equal(changes[1].written, 0);
    sj_transition_report_deinit(&report);
    request_reply = SJ_OK;
    assert_int_equal(renew(HOOK, SJ_RENEWAL_VALUES, false, &report), SJ_OK);
    assert_int_equal(report.hooked_count, 1);
    assert_int_equal(changes[2].written, 1);
    sj_transition_report_deinit(&report);
}

/* Renews the hook of HOOK. Returns how often functions were recorded as unhooked meanwhile. */
static uint32_t renewals_of(bool is_slot)
{
    uint8_t states[FUNCTIONS] = {0};
    uint8_t renewed[FUNCTIONS] = {0};
    const sj_function_states selection = {
        .states = states, .count = FUNCTIONS, .renewed = renewed, .renewed_count = 1};
    sj_transition_report report;
    sj_error error = {0};
    sj_unhooked_set *freed = NULL;
    (void)set_up(NULL);
    table.module.changes = changes;
    changes[1].written = 1;
    changes[1].is_slot = is_slot;
    planned = HOOK;
    states[HOOK] = SJ_FUNCTION_WANTED;
    renewed[HOOK] = SJ_RENEWAL_VALUES;
    assert_int_equal(sj_unhooked_set_new(&freed), SJ_OK);
    assert_int_equal(sj_transition_process(NULL, 1, getpid(), &selection, freed, &report, &error),
                     SJ_OK);
    assert_int_equal(changes[1].function, SJ_HOOK_REPLACED);
    assert_int_equal(changes[1].written, 0);
    assert_int_equal(changes[2].written, 1);
    const uint32_t count = sj_unhooked_set_changes(freed);
    sj_unhooked_set_release(freed);
    sj_transition_report_deinit(&report);
    return count;
}

static void open_calls_through_slots_keep_their_ends(void **state)
{
    (void)state;
    assert_int_equal(renewals_of(true), 0);
    assert_int_equal(renewals_of(false), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(prepared_functions_need_no_request, set_up),
        cmocka_unit_test_setup(unplanned_functions_are_requested_and_hooked, set_up),
        cmocka_unit_test_setup(functions_that_cannot_be_prepared_are_reported_and_others_changed,
                               set_up),
        cmocka_unit_test_setup(hooks_that_cannot_be_removed_are_counted, set_up),
        cmocka_unit_test_setup(a_process_without_an_agent_is_refused, set_up),
        cmocka_unit_test_setup(agents_are_asked_for_changes_even_if_no_hook_is_missing, set_up),
        cmocka_unit_test_setup(hooks_that_cannot_be_renewed_are_counted, set_up),
        cmocka_unit_test_setup(a_renewal_that_has_failed_halfway_is_made_up_for, set_up),
        cmocka_unit_test(open_calls_through_slots_keep_their_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
