/* Tests that a child gets back the action of SIGXFSZ that the process started with. */
#include "agent/host/file_limit.h"
#include "tests/support/check.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void (*signal_handler)(int);

/* True if a child has the action after sj_file_limit_restore. The process starts with `first`. */
static bool is_restored(signal_handler first, bool ignores, signal_handler expected)
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, first);
        if (ignores) {
            sj_file_limit_ignore();
            sj_file_limit_ignore();
        }
        sj_file_limit_restore();
        _exit(signal(SIGXFSZ, SIG_DFL) == expected ? 0 : 1);
    }
    return waitpid(child, &status, 0) == child && status == 0;
}

static void the_first_action_is_restored(void **state)
{
    (void)state;
    assert_true(is_restored(SIG_DFL, true, SIG_DFL));
    assert_true(is_restored(SIG_IGN, true, SIG_IGN));
}

static void an_action_that_was_not_changed_stays(void **state)
{
    (void)state;
    assert_true(is_restored(SIG_DFL, false, SIG_DFL));
    assert_true(is_restored(SIG_IGN, false, SIG_IGN));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_action_is_restored),
        cmocka_unit_test(an_action_that_was_not_changed_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
