/* Kills a process that patches text, before each of its steps in turn. Afterwards the text must
 * run, also if a thread was being moved, and it must be possible to remove the patches. */
#include "agent/ptrace/text_patch.h"

#include "tests/agent/ptrace/victim_place.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGE = 4096, PAGES = 3, LONG = 5, SHORT = 2, STEPS_MAX = 200, PATIENCE_S = 240 };

/* The places of patches. A short jump (FROM) leads to an island (TO) in the next page. SECOND_FROM
 * leads to an island that uses the space of moved code (ROOM), again in the next page. BACK_FROM
 * leads to an island before it, and NEAR_FROM to one in the same page. */
enum {
    FROM = PAGE - 40,
    TO = PAGE + 8,
    ROOM = 2 * PAGE - LONG,
    SECOND_FROM = 2 * PAGE - 60,
    SECOND_TO = 2 * PAGE,
    BACK_FROM = 2 * PAGE + 40,
    BACK_TO = 2 * PAGE - 70,
    NEAR_FROM = 2 * PAGE + 400,
    NEAR_TO = 2 * PAGE + 440,
    LOOP = 0 /* where the thread runs */
};

/* Whenever `patch` is in the text, `needs` must be in the text, too. */
static const struct {
    uint32_t patch;
    uint32_t needs;
} needs[] = {{FROM, TO},
             {SECOND_FROM, SECOND_TO},
             {SECOND_TO, ROOM},
             {BACK_FROM, BACK_TO},
             {NEAR_FROM, NEAR_TO}};

static const uint32_t places[] = {FROM,      TO,      ROOM,      SECOND_FROM, SECOND_TO,
                                  BACK_FROM, BACK_TO, NEAR_FROM, NEAR_TO,     LOOP};
enum { PLACES = sizeof(places) / sizeof(places[0]) };

typedef struct victim {
    pid_t pid;
    uint64_t text;
    sj_tracee target;
} victim;

static int start(void **state)
{
    static victim made;
    uint8_t *text =
        mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (text == MAP_FAILED) {
        return -1;
    }
    memset(text, 0x90, PAGES * PAGE);
    memcpy(text, victim_loop, sizeof(victim_loop));
    if (mprotect(text, PAGES * PAGE, PROT_READ | PROT_EXEC) != 0) {
        return -1;
    }
    made.text = (uint64_t)(uintptr_t)text;
    made.pid = fork();
    if (made.pid == 0) {
        ((void (*)(void))(uintptr_t)text)();
    }
    munmap(text, PAGES * PAGE);
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

static uint32_t where_to(uint32_t from)
{
    for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
        if (needs[i].patch == from && needs[i].needs != ROOM) {
            return needs[i].needs;
        }
    }
    return 0;
}

/* Writes the patch of `place` to `jump`: a short jump, a long jump or, for LOOP, a nop. Returns its
 * size. */
static uint8_t make_jump(uint32_t place, uint8_t *jump)
{
    static const uint8_t long_nop[LONG] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
    const uint32_t to = where_to(place);
    if (place == LOOP) {
        memcpy(jump, long_nop, LONG);
        return LONG;
    }
    memset(jump, 0, SJ_TEXT_PATCH_BYTES);
    jump[0] = to != 0 ? 0xeb : 0xe9;
    jump[1] = to != 0 ? (uint8_t)(to - place - SHORT) : 0x44;
    return to != 0 ? SHORT : LONG;
}

static sj_text_patch *make_patches(const victim *self, bool is_removal)
{
    sj_text_patch *patches = calloc(PLACES, sizeof(*patches));
    for (size_t i = 0; patches != NULL && i < PLACES; i++) {
        uint8_t nops[SJ_TEXT_PATCH_BYTES];
        uint8_t jump[SJ_TEXT_PATCH_BYTES];
        const uint8_t bytes = make_jump(places[i], jump);
        memset(nops, 0x90, sizeof(nops));
        if (places[i] == LOOP) {
            memcpy(nops, victim_loop, LONG);
        }
        patches[i] = (sj_text_patch){.address = self->text + places[i],
                                     .group = (uint32_t)i,
                                     .bytes = bytes,
                                     .window = bytes,
                                     .is_removal = is_removal};
        memcpy(patches[i].expected, is_removal ? jump : nops, bytes);
        memcpy(patches[i].wanted, is_removal ? nops : jump, bytes);
    }
    return patches;
}

/* Returns the place in the loop from which the thread must be moved. It is inside the window while
 * the window has its original bytes. */
static uint64_t place_to_leave(const victim *self)
{
    uint8_t found[LONG];
    const bool is_there = sj_tracee_read(&self->target, self->text, found, LONG) == SJ_OK &&
                          memcmp(found, victim_loop, LONG) == 0;
    return is_there ? PLACE_INSIDE : PLACE_BEHIND;
}

static sj_status write_once(const victim *self, bool is_removal, uint32_t *changed)
{
    sj_tracee target;
    sj_text_change change;
    sj_text_patch_report report = {0};
    sj_text_patch *patches = make_patches(self, is_removal);
    SJ_TRY(sj_tracee_open(self->pid, &target, NULL));
    sj_status status = sj_text_change_init(&target, patches, PLACES, &change);
    if (status == SJ_OK) {
        status = sj_tracee_stop_all(&target, NULL);
        place_victim(self->pid, self->text, is_removal ? PLACE_BEHIND : place_to_leave(self));
    }
    if (status == SJ_OK) {
        status = sj_text_change_clear(&target, &(sj_signal_returns){0}, &change, &report);
    }
    if (status == SJ_OK) {
        status = sj_text_change_apply(&target, &change, &report);
    }
    sj_text_change_deinit(&change);
    sj_tracee_close(&target);
    *changed = report.changed;
    return status;
}

/* Writes or removes all patches. On a busy machine the victim may not run in time, so this retries
 * for PATIENCE_S seconds. */
static sj_status write_all(const victim *self, bool is_removal)
{
    const time_t limit = time(NULL) + PATIENCE_S;
    uint32_t changed = 0;
    sj_status status = SJ_OK;
    while (status == SJ_OK && changed != PLACES && time(NULL) < limit) {
        status = write_once(self, is_removal, &changed);
    }
    return status == SJ_OK && changed != PLACES ? SJ_EIO : status;
}

/* Runs write_all in a child and kills it before its step number `last`. Steps are calls of pwrite
 * and ptrace. Returns false if the child ended before that step. */
static bool write_and_die(const victim *self, bool is_removal, unsigned last)
{
    int status = 0;
    unsigned steps = 0;
    bool is_entry = true;
    const pid_t writer = fork();
    if (writer == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        _exit(write_all(self, is_removal) == SJ_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(writer, &status, 0), writer);
    while (WIFSTOPPED(status)) {
        struct user_regs_struct registers;
        if (WSTOPSIG(status) == SIGTRAP) {
            assert_int_equal(ptrace(PTRACE_GETREGS, writer, NULL, &registers), 0);
            steps += is_entry &&
                     (registers.orig_rax == SYS_pwrite64 || registers.orig_rax == SYS_ptrace);
            is_entry = !is_entry;
            if (steps == last) {
                kill(writer, SIGKILL);
                waitpid(writer, &status, 0);
                return true;
            }
        }
        ptrace(PTRACE_SYSCALL, writer, NULL, NULL);
        assert_int_equal(waitpid(writer, &status, 0), writer);
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return false;
}

static bool is_written(const victim *self, uint32_t place)
{
    uint8_t found[SJ_TEXT_PATCH_BYTES];
    uint8_t jump[SJ_TEXT_PATCH_BYTES];
    const uint8_t bytes = make_jump(place, jump);
    assert_int_equal(sj_tracee_read(&self->target, self->text + place, found, bytes), SJ_OK);
    if (memcmp(found, jump, bytes) == 0) {
        return true;
    }
    for (uint8_t i = 0; i < bytes; i++) {
        assert_int_equal(found[i], place == LOOP ? victim_loop[i] : 0x90);
    }
    return false;
}

static void check_text_runs(const victim *self)
{
    for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
        if (is_written(self, needs[i].patch) && !is_written(self, needs[i].needs)) {
            fail_msg("the jump at %#x is there, %#x is not", needs[i].patch, needs[i].needs);
        }
    }
    assert_int_equal(waitpid(self->pid, NULL, WNOHANG), 0);
}

static void kill_at_every_step(const victim *self, bool is_removal)
{
    unsigned last = 1;
    for (; last < STEPS_MAX; last++) {
        if (is_removal) {
            assert_int_equal(write_all(self, false), SJ_OK);
        }
        const bool was_killed = write_and_die(self, is_removal, last);
        check_text_runs(self);
        assert_int_equal(write_all(self, true), SJ_OK);
        for (size_t i = 0; i < PLACES; i++) {
            assert_false(is_written(self, places[i]));
        }
        if (!was_killed) {
            break;
        }
    }
    /* The writer needs one step for each page, and one more for late writes to one of them. */
    assert_in_range(last, PAGES + 2, STEPS_MAX - 1);
}

static void test_hooks_can_be_cut_off_at_any_step(void **state)
{
    kill_at_every_step(*state, false);
}

static void test_removals_can_be_cut_off_at_any_step(void **state)
{
    kill_at_every_step(*state, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_hooks_can_be_cut_off_at_any_step, start, stop),
        cmocka_unit_test_setup_teardown(test_removals_can_be_cut_off_at_any_step, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
