/* Tests each reason not to attach by the facts alone, so that kernel settings need not change. */
#include "agent/attach/preflight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { PID = 4711, USER = 1000 };

#define DAC_OVERRIDE_CAPABILITY (UINT64_C(1) << 1)
#define PTRACE_CAPABILITY (UINT64_C(1) << 19)

static sj_preflight_facts fine(void)
{
    return (sj_preflight_facts){.pid = PID,
                                .own_pid = 99,
                                .own_user = USER,
                                .pid_inside = PID,
                                .process = {.name = "app",
                                            .state = 'S',
                                            .leader = PID,
                                            .parent = 50,
                                            .user = USER,
                                            .effective_user = USER,
                                            .threads = 3}};
}

static void refused(const sj_preflight_facts *facts, sj_status status, const char *reason,
                    const char *remedy)
{
    sj_error error = {0};
    assert_int_equal(sj_preflight_decide(facts, &error), status);
    if (strstr(error.text, reason) == NULL || strstr(error.text, remedy) == NULL) {
        fail_msg("\"%s\" and \"%s\" are not both in: %s", reason, remedy, error.text);
    }
}

static void test_a_process_of_the_same_user_is_attached_to(void **state)
{
    (void)state;
    sj_preflight_facts facts = fine();
    assert_int_equal(sj_preflight_decide(&facts, NULL), SJ_OK);
    facts.own_user = facts.process.effective_user = 0;
    facts.process.capabilities = facts.own_capabilities = 0x1ff;
    assert_int_equal(sj_preflight_decide(&facts, NULL), SJ_OK);
}

static void test_yama_restrictions_are_explained(void **state)
{
    (void)state;
    sj_preflight_facts facts = fine();
    facts.yama = 1;
    refused(&facts, SJ_EPERM, "descendants", "sysctl kernel.yama.ptrace_scope=0");
    facts.yama = 2;
    refused(&facts, SJ_EPERM, "SYS_PTRACE", "attach as root");
    facts.own_capabilities = PTRACE_CAPABILITY;
    assert_int_equal(sj_preflight_decide(&facts, NULL), SJ_OK);
    facts.yama = 3;
    refused(&facts, SJ_EPERM, "until it is restarted", "sojourn record");
}

static void test_processes_of_other_users_are_refused(void **state)
{
    (void)state;
    sj_preflight_facts facts = fine();
    facts.own_user = 1001;
    refused(&facts, SJ_EPERM, "belongs to user 1000", "sudo -u '#1000' sojourn attach 4711");
    facts.own_user = 0;
    facts.own_capabilities = PTRACE_CAPABILITY;
    refused(&facts, SJ_EPERM, "belongs to user 1000",
            "user: setpriv --reuid=1000 --clear-groups --inh-caps=+sys_ptrace --ambient");
}

static void test_a_daemon_that_dropped_root(void **state)
{
    (void)state;
    sj_preflight_facts facts = fine();
    facts.is_closed = true;
    facts.own_user = 1001;
    refused(&facts, SJ_EPERM, "belongs to user 1000",
            "user: sudo setpriv --reuid=1000 --clear-groups --inh-caps=+sys_ptrace,+dac_override");
    facts.own_user = 0;
    facts.own_capabilities = PTRACE_CAPABILITY;
    refused(&facts, SJ_EPERM, "belongs to user 1000",
            "user: setpriv --reuid=1000 --clear-groups --inh-caps=+sys_ptrace,+dac_override");
}

static void test_a_container_without_the_capability(void **state)
{
    (void)state;
    sj_preflight_facts facts = fine();
    facts.process.capabilities = 1 << 21;
    refused(&facts, SJ_EPERM, "has capabilities", "--cap-add=SYS_PTRACE");
    facts = fine();
    facts.is_closed = true;
    refused(&facts, SJ_EPERM, "PR_SET_DUMPABLE", "--cap-add=SYS_PTRACE");
    facts.own_capabilities = PTRACE_CAPABILITY;
    refused(&facts, SJ_EPERM, "memory belongs to root", "--ambient-caps=+sys_ptrace,+dac_override");
    facts.own_capabilities |= DAC_OVERRIDE_CAPABILITY;
    assert_int_equal(sj_preflight_decide(&facts, NULL), SJ_OK);
}

static void test_other_containers_and_agents(void **state)
{
    (void)state;
    sj_preflight_facts facts = fine();
    facts.has_direct = true;
    refused(&facts, SJ_EEXIST, "libsojourn-direct.so", "start it without");
    facts = fine();
    facts.is_agent_hidden = true;
    facts.pid_inside = 7;
    refused(&facts, SJ_EUNSUPPORTED, "does not see the agent's file",
            "run sojourn inside of it, where it is process 7");
}

static void test_init_kernel_threads_and_itself_are_refused(void **state)
{
    (void)state;
    sj_preflight_facts facts = fine();
    facts.pid = facts.process.leader = 1;
    refused(&facts, SJ_EUNSUPPORTED, "refusing", "PID 1 (init)");
    facts = fine();
    facts.own_pid = PID;
    refused(&facts, SJ_EUNSUPPORTED, "itself", "");
    facts = fine();
    facts.process.leader = 4700;
    refused(&facts, SJ_EUNSUPPORTED, "a thread of process 4700", "sojourn attach 4700");
    facts = fine();
    facts.process.is_kernel = true;
    refused(&facts, SJ_EUNSUPPORTED, "thread of the kernel", "");
}

static void test_ended_and_stopped_processes_are_refused(void **state)
{
    (void)state;
    sj_preflight_facts facts = fine();
    facts.process.state = 'Z';
    facts.process.threads = 1;
    refused(&facts, SJ_ENOTFOUND, "has ended", "parent 50");
    facts.process.threads = 2;
    refused(&facts, SJ_EUNSUPPORTED, "first thread of process 4711 has ended", "sojourn record");
    facts = fine();
    facts.process.is_ending = true;
    refused(&facts, SJ_ENOTFOUND, "is ending", "");
    facts = fine();
    facts.process.state = 'T';
    refused(&facts, SJ_EUNSUPPORTED, "stopped", "kill -CONT 4711");
    facts = fine();
    facts.process.is_confined = true;
    refused(&facts, SJ_EUNSUPPORTED, "seccomp", "sojourn record");
}

static void test_processes_with_another_tracer_are_refused(void **state)
{
    (void)state;
    sj_preflight_facts facts = fine();
    facts.process.tracer = 88;
    facts.process.state = 't';
    strcpy(facts.tracer_name, "gdb");
    refused(&facts, SJ_EEXIST, "process 88 (gdb)", "which must detach first");
    strcpy(facts.tracer_name, "sojourn");
    refused(&facts, SJ_EEXIST, "recorded already, by process 88", "sojourn detach 4711");
}

static void test_unsupported_programs_are_refused(void **state)
{
    (void)state;
    sj_preflight_facts facts = fine();
    facts.program = SJ_PROGRAM_STATIC;
    refused(&facts, SJ_EUNSUPPORTED, "statically linked", "link it dynamically");
    facts.program = SJ_PROGRAM_FOREIGN;
    refused(&facts, SJ_EUNSUPPORTED, "another machine", "a sojourn for that machine");
    facts.program = SJ_PROGRAM_EMULATOR;
    refused(&facts, SJ_EUNSUPPORTED, "is an emulator (app)", "sojourn record");
    facts.program = SJ_PROGRAM_UNREADABLE;
    refused(&facts, SJ_EPERM, "cannot be read", "attach as root");
}

static void test_facts_of_a_living_process_are_true(void **state)
{
    (void)state;
    sj_preflight_facts facts;
    assert_int_equal(sj_preflight_facts_read(getpid(), "/proc/self/exe", &facts), SJ_OK);
    assert_int_equal(facts.process.leader, getpid());
    assert_int_equal(facts.pid_inside, getpid());
    assert_int_equal(facts.process.parent, getppid());
    assert_int_equal(facts.process.effective_user, geteuid());
    assert_int_equal(facts.process.state, 'R');
    assert_int_equal(facts.program, SJ_PROGRAM_FITS);
    assert_false(facts.process.is_ending || facts.process.is_kernel || facts.is_closed);
    assert_int_equal(sj_preflight_facts_read(4190000, NULL, &facts), SJ_ENOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_process_of_the_same_user_is_attached_to),
        cmocka_unit_test(test_yama_restrictions_are_explained),
        cmocka_unit_test(test_processes_of_other_users_are_refused),
        cmocka_unit_test(test_a_daemon_that_dropped_root),
        cmocka_unit_test(test_a_container_without_the_capability),
        cmocka_unit_test(test_other_containers_and_agents),
        cmocka_unit_test(test_init_kernel_threads_and_itself_are_refused),
        cmocka_unit_test(test_ended_and_stopped_processes_are_refused),
        cmocka_unit_test(test_processes_with_another_tracer_are_refused),
        cmocka_unit_test(test_unsupported_programs_are_refused),
        cmocka_unit_test(test_facts_of_a_living_process_are_true),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
