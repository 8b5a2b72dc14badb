/* A process that keeps memory of the agent, or that cannot be left, may be about to end. Then
 * nothing stays. The linker replaces the agent in the process, and the moment at which the process
 * ends. */
#include "agent/attach/detach.h"
#include "agent/livepatch/jvm_request.h"
#include "agent/livepatch/remote_agent.h"
#include "tests/support/check.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AGENT_BYTES = 65536, SOON = 3, NEVER = -1 };

static sj_status found;      /* the result of reading the agent in the process */
static int checks_until_end; /* the process is there at so many more checks; NEVER: at all */

sj_status __wrap_sj_remote_agent_find(const sj_tracee *target, sj_remote_agent *agent);
sj_status __wrap_sj_remote_agent_find(const sj_tracee *target, sj_remote_agent *agent)
{
    (void)target;
    /* The text is restored, and the agent stays because calls return through its thunk. */
    atomic_store(&agent->state.phase, SJ_AGENT_STATE_DETACHED);
    atomic_store(&agent->state.binding, SJ_AGENT_STATE_RELEASED);
    return found;
}

sj_status __wrap_sj_jvm_leave(sj_tracee *target, sj_remote_agent *agent, sj_error *error);
sj_status __wrap_sj_jvm_leave(sj_tracee *target, sj_remote_agent *agent, sj_error *error)
{
    (void)target;
    (void)agent;
    (void)error;
    return SJ_OK;
}

sj_status __wrap_sj_remote_module_find(pid_t pid, const char *prefix, sj_remote_module *module);
sj_status __wrap_sj_remote_module_find(pid_t pid, const char *prefix, sj_remote_module *module)
{
    (void)pid;
    (void)prefix;
    *module = (sj_remote_module){.low = AGENT_BYTES, .high = AGENT_BYTES + AGENT_BYTES};
    return SJ_OK;
}

bool __wrap_sj_tracee_is_there(const sj_tracee *target);
bool __wrap_sj_tracee_is_there(const sj_tracee *target)
{
    (void)target;
    const bool is_there = checks_until_end != 0;
    checks_until_end -= checks_until_end > 0;
    return is_there;
}

/* Detaches from a process that ends after so many checks. */
static sj_status detach(sj_status read, int checks, sj_detach_process_report *report)
{
    sj_error error = {0};
    const pid_t child = fork();
    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    found = read;
    checks_until_end = checks;
    const sj_status status = sj_detach_process(child, report, &error);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return status;
}

static void a_process_that_keeps_the_agent_and_ends_keeps_nothing(void **state)
{
    sj_detach_process_report report;
    (void)state;
    assert_int_equal(detach(SJ_OK, SOON, &report), SJ_OK);
    assert_true(report.had_agent);
    assert_int_equal(report.left_bytes, 0);
    assert_false(report.stays);
}

static void a_process_that_keeps_the_agent_and_lives_is_reported(void **state)
{
    sj_detach_process_report report;
    (void)state;
    assert_int_equal(detach(SJ_OK, NEVER, &report), SJ_OK);
    assert_int_equal(report.left_bytes, AGENT_BYTES);
    assert_true(report.stays);
}

static void a_process_that_cannot_be_left_and_ends_is_left(void **state)
{
    sj_detach_process_report report;
    (void)state;
    assert_int_equal(detach(SJ_EIO, SOON, &report), SJ_OK);
    assert_int_equal(detach(SJ_EIO, NEVER, &report), SJ_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_that_keeps_the_agent_and_ends_keeps_nothing),
        cmocka_unit_test(a_process_that_keeps_the_agent_and_lives_is_reported),
        cmocka_unit_test(a_process_that_cannot_be_left_and_ends_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
