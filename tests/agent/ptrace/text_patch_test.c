/* Tests that the text of a stopped process is patched completely or not at all, and that no thread
 * stands in the text meanwhile. */
#include "agent/ptrace/text_patch.h"

#include "agent/ptrace/safepoint.h"
#include "agent/ptrace/tracee_modules.h"
#include "tests/agent/ptrace/victim_place.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGE = 4096, WINDOW = 5, TOGGLES = 200, PATIENCE_S = 240 };

static const uint8_t long_nop[WINDOW] = {0x0f, 0x1f, 0x44, 0x00, 0x00};

static volatile unsigned *handled; /* number of handled signals; shared with the victim */

static void on_signal(int signal)
{
    (void)signal;
    ++*handled;
}

typedef struct victim {
    pid_t pid;
    uint64_t text;
    sj_tracee target;
} victim;

static int start(void **state)
{
    static victim made;
    uint8_t *page =
        mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return -1;
    }
    memset(page, 0xcc, 2 * PAGE);
    /* The window crosses a page boundary. */
    uint8_t *code = page + PAGE - 2;
    memcpy(code, victim_loop, sizeof(victim_loop));
    if (mprotect(page, 2 * PAGE, PROT_READ | PROT_EXEC) != 0) {
        return -1;
    }
    made.text = (uint64_t)(uintptr_t)code;
    handled = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (handled == MAP_FAILED) {
        return -1;
    }
    signal(SIGUSR1, on_signal);
    made.pid = fork();
    if (made.pid == 0) {
        ((void (*)(void))(uintptr_t)code)();
    }
    munmap(page, 2 * PAGE);
    *state = &made;
    return made.pid > 0 && sj_tracee_open(made.pid, &made.target, NULL) == SJ_OK ? 0 : -1;
}

static int stop(void **state)
{
    victim *self = *state;
    sj_tracee_close(&self->target);
    kill(self->pid, SIGKILL);
    return waitpid(self->pid, NULL, 0) == self->pid ? 0 : -1;
}

static sj_text_patch make_patch(uint64_t address, uint32_t group, const uint8_t *expected,
                                const uint8_t *wanted)
{
    sj_text_patch patch = {.address = address, .group = group, .bytes = WINDOW, .window = WINDOW};
    memcpy(patch.expected, expected, WINDOW);
    memcpy(patch.wanted, wanted, WINDOW);
    return patch;
}

/* Writes `count` patches while the victim is stopped. */
static sj_status apply(victim *self, const sj_text_patch *patches, size_t count,
                       sj_text_change *change, sj_text_patch_report *report)
{
    sj_text_patch *copy = malloc(count * sizeof(*copy));
    assert_non_null(copy);
    memcpy(copy, patches, count * sizeof(*copy));
    sj_status status = sj_text_change_init(&self->target, copy, count, change);
    if (status == SJ_OK) {
        assert_int_equal(sj_tracee_stop_all(&self->target, NULL), SJ_OK);
        if (memcmp(patches[0].expected, victim_loop, WINDOW) == 0) {
            place_victim(self->pid, self->text, PLACE_INSIDE);
        }
        *report = (sj_text_patch_report){0};
        status = sj_text_change_clear(&self->target, &(sj_signal_returns){0}, change, report);
        if (status == SJ_OK) {
            status = sj_text_change_apply(&self->target, change, report);
        }
        sj_tracee_resume_all(&self->target);
    }
    return status;
}

static void test_threads_are_moved_out_of_what_is_written(void **state)
{
    victim *self = *state;
    uint32_t moved = 0;
    for (int i = 0; i < TOGGLES; i++) {
        const bool back = i % 2 != 0;
        sj_text_patch patch =
            make_patch(self->text, 1, back ? long_nop : victim_loop, back ? victim_loop : long_nop);
        sj_text_patch_report report;
        const struct timespec pause = {.tv_nsec = 200000};
        uint8_t found[sizeof(victim_loop)];
        sj_text_change change;
        const time_t limit = time(NULL) + PATIENCE_S;
        do { /* on a busy machine, the victim may not run in time */
            assert_true(time(NULL) < limit);
            assert_int_equal(apply(self, &patch, 1, &change, &report), SJ_OK);
            sj_text_change_deinit(&change);
        } while (report.refused != 0);
        assert_int_equal(sj_tracee_read(&self->target, self->text, found, sizeof(found)), SJ_OK);
        assert_int_equal(report.changed, 1);
        assert_memory_equal(found, patch.wanted, WINDOW);
        moved += report.moved;
        nanosleep(&pause, NULL);
        assert_int_equal(waitpid(self->pid, NULL, WNOHANG), 0);
    }
    assert_true(moved > TOGGLES / 10);
}

/* Patches and restores the loop at least TOGGLES times, each time with a pending signal, until the
 * victim was moved often enough. */
static void move_with_signals(victim *self, sj_signal_returns returns)
{
    uint32_t moved = 0;
    bool back = false;
    const time_t limit = time(NULL) + PATIENCE_S;
    const unsigned before = *handled;
    for (unsigned i = 0; i < TOGGLES || moved <= TOGGLES / 10; i++) {
        assert_true(time(NULL) < limit);
        sj_text_patch_report report;
        sj_text_change change;
        sj_text_patch *patch = malloc(sizeof(*patch));
        assert_non_null(patch);
        *patch =
            make_patch(self->text, 1, back ? long_nop : victim_loop, back ? victim_loop : long_nop);
        assert_int_equal(sj_text_change_init(&self->target, patch, 1, &change), SJ_OK);
        assert_int_equal(sj_tracee_stop_all(&self->target, NULL), SJ_OK);
        if (!back) {
            place_victim(self->pid, self->text, PLACE_INSIDE);
        }
        assert_int_equal(kill(self->pid, SIGUSR1), 0);
        report = (sj_text_patch_report){0};
        assert_int_equal(sj_text_change_clear(&self->target, &returns, &change, &report), SJ_OK);
        assert_int_equal(sj_text_change_apply(&self->target, &change, &report), SJ_OK);
        sj_text_change_deinit(&change);
        sj_tracee_resume_all(&self->target);
        /* The handler of the previous round may still run and return into the window. */
        assert_int_equal(report.changed + report.refused, 1);
        back = report.changed != 0 ? !back : back;
        moved += report.changed != 0 ? report.moved : 0;
        while (*handled != before + i + 1) {
            const struct timespec pause = {.tv_nsec = 20000};
            int status = 0;
            const pid_t ended = waitpid(self->pid, &status, WNOHANG);
            if (ended != 0) {
                fail_msg("round %u: the victim has ended: %#x", i, (unsigned)status);
            }
            nanosleep(&pause, NULL);
        }
    }
}

static void test_signals_that_wait_while_a_thread_is_moved_are_handled(void **state)
{
    victim *self = *state;
    const uint64_t restorer = sj_remote_restorer_find(&self->target);
    assert_int_not_equal(restorer, 0);
    move_with_signals(self, (sj_signal_returns){.of_library = restorer});
}

static void test_handlers_with_a_restorer_of_their_own_are_handled(void **state)
{
    move_with_signals(*state, (sj_signal_returns){0});
}

static void test_a_group_with_other_bytes_is_left_alone_as_a_whole(void **state)
{
    victim *self = *state;
    static const uint8_t traps[WINDOW] = {0xcc, 0xcc, 0xcc, 0xcc, 0xcc};
    uint8_t found[sizeof(victim_loop)];
    sj_text_patch_report report;
    sj_text_patch patches[] = {make_patch(self->text - 64, 7, victim_loop, long_nop),
                               make_patch(self->text - 32, 8, traps, long_nop),
                               make_patch(self->text, 7, victim_loop, long_nop)};
    sj_text_change change;
    assert_int_equal(apply(self, patches, 3, &change, &report), SJ_OK);
    assert_int_equal(report.changed, 1);
    assert_int_equal(report.refused, 2);
    assert_true(change.patches[0].refused && change.patches[2].refused &&
                !change.patches[1].refused);
    sj_text_change_deinit(&change);
    assert_int_equal(sj_tracee_read(&self->target, self->text, found, sizeof(found)), SJ_OK);
    assert_memory_equal(found, victim_loop, sizeof(victim_loop));
    assert_int_equal(sj_tracee_read(&self->target, self->text - 32, found, WINDOW), SJ_OK);
    assert_memory_equal(found, long_nop, WINDOW);
}

/* Stops the victim with its thread at the start of the loop. */
static void stop_at_start(victim *self)
{
    const time_t limit = time(NULL) + PATIENCE_S;
    for (sj_registers found = {0}; found.pc != self->text;) {
        assert_true(time(NULL) < limit);
        assert_int_equal(sj_tracee_stop_all(&self->target, NULL), SJ_OK);
        /* does nothing if the thread is not in the loop yet */
        place_victim(self->pid, self->text, 0);
        assert_int_equal(sj_registers_get(self->pid, &found), SJ_OK);
        if (found.pc != self->text) {
            sj_tracee_resume_all(&self->target);
        }
    }
}

/* A thread at a removed jump is moved to the jump's final target. The bytes of the island may then
 * be the middle of another instruction. */
static void test_a_thread_on_a_jump_that_is_removed_has_taken_it(void **state)
{
    enum { ISLAND = -64, SHORT = 2 };
    static const uint8_t to_island[SHORT] = {0xeb, (uint8_t)(ISLAND - SHORT)};
    static const uint8_t to_stub[WINDOW] = {0xe9, PLACE_BEHIND - (ISLAND + WINDOW), 0, 0, 0};
    victim *self = *state;
    sj_text_patch_report report = {0};
    sj_text_change change;
    sj_registers found;
    sj_text_patch *patches = calloc(2, sizeof(*patches));
    assert_non_null(patches);
    patches[0] = (sj_text_patch){
        .address = self->text, .group = 1, .bytes = SHORT, .window = WINDOW, .is_removal = true};
    memcpy(patches[0].expected, to_island, SHORT);
    memcpy(patches[0].wanted, victim_loop, SHORT);
    patches[1] = make_patch(self->text + (uint64_t)(int64_t)ISLAND, 1, to_stub, long_nop);
    patches[1].is_removal = true;
    assert_int_equal(sj_text_change_init(&self->target, patches, 2, &change), SJ_OK);
    stop_at_start(self);
    assert_int_equal(sj_text_change_clear(&self->target, &(sj_signal_returns){0}, &change, &report),
                     SJ_OK);
    assert_int_equal(sj_registers_get(self->pid, &found), SJ_OK);
    assert_int_equal(found.pc, self->text + PLACE_BEHIND);
    assert_int_equal(report.refused, 0);
    sj_tracee_resume_all(&self->target);
    sj_text_change_deinit(&change);
}

static void test_a_thread_goes_back_where_instructions_may_be_repeated(void **state)
{
    victim *self = *state;
    sj_text_patch_report report = {0};
    sj_text_change change;
    sj_registers found;
    sj_text_patch *patch = calloc(1, sizeof(*patch));
    assert_non_null(patch);
    *patch = (sj_text_patch){
        .address = self->text, .group = 1, .bytes = 1, .window = WINDOW, .repeats = true};
    assert_int_equal(sj_text_change_init(&self->target, patch, 1, &change), SJ_OK);
    stop_at_start(self);
    place_victim(self->pid, self->text, PLACE_INSIDE);
    assert_int_equal(sj_text_change_clear(&self->target, &(sj_signal_returns){0}, &change, &report),
                     SJ_OK);
    assert_int_equal(sj_registers_get(self->pid, &found), SJ_OK);
    assert_int_equal(found.pc, self->text);
    assert_int_equal(report.refused, 0);
    sj_tracee_resume_all(&self->target);
    sj_text_change_deinit(&change);
}

static void test_memory_that_is_not_there_is_an_error(void **state)
{
    victim *self = *state;
    sj_text_patch_report report;
    sj_text_patch patch = make_patch(64, 1, victim_loop, long_nop);
    sj_text_change change;
    assert_int_equal(apply(self, &patch, 1, &change, &report), SJ_EIO);
    sj_text_change_deinit(&change);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_threads_are_moved_out_of_what_is_written, start, stop),
        cmocka_unit_test_setup_teardown(test_signals_that_wait_while_a_thread_is_moved_are_handled,
                                        start, stop),
        cmocka_unit_test_setup_teardown(test_handlers_with_a_restorer_of_their_own_are_handled,
                                        start, stop),
        cmocka_unit_test_setup_teardown(test_a_group_with_other_bytes_is_left_alone_as_a_whole,
                                        start, stop),
        cmocka_unit_test_setup_teardown(test_a_thread_on_a_jump_that_is_removed_has_taken_it, start,
                                        stop),
        cmocka_unit_test_setup_teardown(test_a_thread_goes_back_where_instructions_may_be_repeated,
                                        start, stop),
        cmocka_unit_test_setup_teardown(test_memory_that_is_not_there_is_an_error, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
