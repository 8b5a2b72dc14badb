/* Tests what a tracer reads of a thread on AArch64: jumps of patches, restorers, and the frames of
 * signal handlers, which it finds on a stack by their content. The emulator cannot trace processes,
 * so this process's own memory stands for the tracee's. */
#include "agent/abi/saved_context.h"
#include "agent/ptrace/arch.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    SCAN_BYTES = 16 * 1024,
    B_FORWARD = 0x14000002,
    B_BACK = 0x17fffffe,
    BL = 0x94000002,
    RET = (int)0xd65f03c0
};

sj_status sj_tracee_read(const sj_tracee *target, uint64_t address, void *bytes, size_t size)
{
    (void)target;
    memcpy(bytes, (const void *)(uintptr_t)address, size);
    return SJ_OK;
}

static uint64_t follow(uint32_t code, uint32_t count)
{
    uint64_t to = 0;
    return sj_jump_follow(0x1000, (const uint8_t *)&code, count, &to) ? to : 0;
}

static void test_a_patch_is_a_single_branch(void **state)
{
    (void)state;
    assert_int_equal(follow(B_FORWARD, 4), 0x1008);
    assert_int_equal(follow(B_BACK, 4), 0x0ff8);
    assert_int_equal(follow(BL, 4), 0);
    assert_int_equal(follow((uint32_t)RET, 4), 0);
    assert_int_equal(follow(B_FORWARD, 3), 0);
    assert_int_equal(SJ_LONG_JUMP_BYTES, 4);
}

static void test_a_restorer_is_found_by_its_code(void **state)
{
    static const uint32_t text[] = {0xd503201f, 0xd2801168, 0xd4000001, 0xd2801168};
    const sj_tracee self = {.pid = -1};
    const uint64_t low = (uint64_t)(uintptr_t)text;
    (void)state;
    assert_int_equal(sj_restorer_find_in(&self, low, low + sizeof(text)), low + 4);
    assert_int_equal(sj_restorer_find_in(&self, low, low + 8), 0);
}

/* The frame that a handler finds on its own stack. */
static struct {
    uint64_t context;
    uint64_t found;
    uint32_t frames;
    uint64_t pc_at;
    uint64_t saved_pc_at; /* pc_at, after the agent's own context was saved behind the records */
    bool is_shown;
    bool is_shown_when_saved;
} seen;

/* Returns the end of the records of a context, as the kernel has written them. */
static uint64_t end_of_records(const ucontext_t *context)
{
    const uint8_t *record = (const uint8_t *)context + 464;
    uint32_t head[2];
    for (memcpy(head, record, sizeof(head)); head[0] != 0; memcpy(head, record, sizeof(head))) {
        record += head[1];
    }
    return (uint64_t)(uintptr_t)record + 16;
}

static void look(int number, siginfo_t *info, void *context)
{
    const sj_signal_returns returns = {.of_agent = 1};
    const sj_registers here = {.sp = (uint64_t)(uintptr_t)__builtin_frame_address(0)};
    const uint64_t low = sj_signal_context_start(NULL, &here, &returns);
    const uint64_t end = end_of_records(context);
    const uint64_t magic = SJ_SAVED_CONTEXT_MAGIC;
    (void)number;
    (void)info;
    seen.context = (uint64_t)(uintptr_t)context;
    for (uint64_t at = low; at < low + SCAN_BYTES; at += sizeof(uint64_t)) {
        if (sj_signal_is_frame(&returns, (const uint8_t *)(uintptr_t)at, SJ_SIGNAL_FRAME_BYTES)) {
            seen.found = at;
            seen.frames++;
        }
    }
    (void)!sj_signal_find_pc(NULL, &returns, 0, seen.context, &seen.pc_at, &seen.is_shown);
    memcpy((void *)(uintptr_t)end, &magic, sizeof(magic));
    (void)!sj_signal_find_pc(NULL, &returns, 0, seen.context, &seen.saved_pc_at,
                             &seen.is_shown_when_saved);
    seen.saved_pc_at -= end;
    memset((void *)(uintptr_t)end, 0, sizeof(magic));
}

static void test_a_handlers_frame_is_found_by_its_content(void **state)
{
    const struct sigaction action = {.sa_sigaction = look, .sa_flags = SA_SIGINFO};
    volatile uint8_t below[SCAN_BYTES] = {0}; /* so that the scan stays on the stack */
    (void)state;
    (void)below;
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    assert_int_equal(raise(SIGUSR1), 0);
    assert_int_equal(seen.frames, 1);
    assert_int_equal(seen.found, seen.context);
    assert_int_equal(seen.pc_at,
                     seen.context + offsetof(ucontext_t, uc_mcontext) + offsetof(mcontext_t, pc));
    assert_true(seen.is_shown);
    assert_true(!seen.is_shown_when_saved);
    assert_int_equal(seen.saved_pc_at, offsetof(sj_saved_context, pc));
}

static void test_calls_that_libc_makes_with_a_lock_are_not_interrupted(void **state)
{
    (void)state;
    assert_true(!sj_inferior_call_is_allowed(SYS_mmap));
    assert_true(!sj_inferior_call_is_allowed(SYS_clone));
    assert_true(sj_inferior_call_is_allowed(SYS_ppoll));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_patch_is_a_single_branch),
        cmocka_unit_test(test_a_restorer_is_found_by_its_code),
        cmocka_unit_test(test_a_handlers_frame_is_found_by_its_content),
        cmocka_unit_test(test_calls_that_libc_makes_with_a_lock_are_not_interrupted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
