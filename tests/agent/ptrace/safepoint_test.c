/* A thread that stands in a stub is not made to call functions while the program's function there
 * may hold a lock. The test plays the agent. */
#include "agent/ptrace/safepoint.h"

#include "agent/ptrace/proc_status.h"
#include "agent/ptrace/remote_stubs.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { AREA_BYTES = 8192, CODE_AT = 4096, MAP_AT = 256, NO_DISTANCE = 1 };

/* Shared by the test and the child. */
static _Atomic uint32_t *waiting;
static uint8_t *area;
static uint64_t wait_from;
static uint64_t wait_to;

/* The functions that the stub stands for. The first one has an allocator's name. */
void arena_hold(void);
void arena_hold(void)
{
    atomic_fetch_add(waiting, 1);
}

void hold_nothing(void);
void hold_nothing(void)
{
    atomic_fetch_add(waiting, 2);
}

/* The agent's code, which a thread waits in. */
__attribute__((noinline, section("agent_code"))) void agent_wait(void);
void agent_wait(void)
{
    atomic_fetch_add(waiting, 1);
    for (;;) {
        pause();
    }
}

sj_status __wrap_sj_remote_stubs_read(const sj_tracee *target, sj_remote_stubs *stubs);
sj_status __wrap_sj_remote_stubs_read(const sj_tracee *target, sj_remote_stubs *stubs)
{
    const uint64_t low = (uint64_t)(uintptr_t)area;
    (void)target;
    *stubs = (sj_remote_stubs){.agent = {.low = wait_from, .high = wait_to},
                               .areas = calloc(1, sizeof(*stubs->areas)),
                               .count = 1};
    assert_non_null(stubs->areas);
    stubs->areas[0] = (sj_remote_range){.low = low, .high = low + AREA_BYTES};
    return SJ_OK;
}

/* Writes an area whose stub calls agent_wait. If `calls` is false, it counts itself and spins. */
static void write_area(void (*place)(void), bool calls)
{
    const uint64_t low = (uint64_t)(uintptr_t)area;
    const uint64_t at = (uint64_t)(uintptr_t)place;
    const uint64_t text = at & ~(uint64_t)(AREA_BYTES - 1);
    const sj_stub_area head = {.magic = SJ_STUB_AREA_MAGIC,
                               .text = (int64_t)(text - low),
                               .map = MAP_AT,
                               .count = 1,
                               .code_end = AREA_BYTES};
    const sj_stub_entry entry = {.start = CODE_AT << SJ_STUB_STACK_BITS | NO_DISTANCE,
                                 .place = (uint32_t)(at - text)};
    const void *counter = waiting;
    const uint64_t operand = (uint64_t)(uintptr_t)(calls ? (const void *)agent_wait : counter);
    uint8_t *code = area + CODE_AT;
    memcpy(area + SJ_STUB_AREA_OFFSET, &head, sizeof(head));
    memcpy(area + MAP_AT, &entry, sizeof(entry));
    memcpy(code, "\x48\xb8", 2); /* mov $operand, %rax */
    memcpy(code + 2, &operand, sizeof(operand));
    memcpy(code + 10, calls ? "\xff\xd0\x90" : "\xf0\xff\x00",
           3);                        /* call *%rax; lock incl (%rax) */
    memcpy(code + 13, "\xeb\xfe", 2); /* jmp . */
}

static void *be_idle(void *argument)
{
    atomic_fetch_add(waiting, 1);
    for (;;) {
        pause();
    }
    return argument;
}

static void wait_until_asleep(pid_t pid)
{
    sj_proc_thread thread = {0};
    while (sj_proc_thread_read(pid, pid, &thread) == SJ_OK && thread.state != 'S') {
        sched_yield();
    }
}

/* Runs a child whose first thread is in the stub; another one is idle. */
static pid_t start_child(bool calls)
{
    *waiting = 0;
    const pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        void (*const volatile stub)(void) = (void (*)(void))(uintptr_t)(area + CODE_AT);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pthread_create(&thread, NULL, be_idle, NULL);
        stub();
        _exit(1);
    }
    assert_true(child > 0);
    while (atomic_load(waiting) != 2) {
        sched_yield();
    }
    if (calls) {
        wait_until_asleep(child);
    }
    return child;
}

/* True if the thread in the stub is chosen, which is the first one that is tried. */
static bool is_chosen(void (*place)(void), bool calls)
{
    sj_tracee target;
    sj_unwinder *unwinder = NULL;
    size_t thread = 0;
    write_area(place, calls);
    const pid_t child = start_child(calls);
    assert_int_equal(sj_tracee_open(child, &target, NULL), SJ_OK);
    assert_int_equal(sj_unwinder_new(&target, &unwinder), SJ_OK);
    assert_int_equal(sj_safepoint_find(&target, unwinder, &thread), SJ_OK);
    const bool chosen = target.threads[thread].tid == child;
    sj_unwinder_free(unwinder);
    sj_tracee_close(&target);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return chosen;
}

static void a_stub_in_an_allocator_is_not_safe(void **state)
{
    (void)state;
    assert_false(is_chosen(arena_hold, false));
    assert_true(is_chosen(hold_nothing, false));
}

static void the_agents_wait_in_an_allocator_is_not_safe(void **state)
{
    (void)state;
    assert_false(is_chosen(arena_hold, true));
    assert_true(is_chosen(hold_nothing, true));
}

static void *map_shared(size_t bytes, int protection)
{
    void *memory = mmap(NULL, bytes, protection, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stub_in_an_allocator_is_not_safe),
        cmocka_unit_test(the_agents_wait_in_an_allocator_is_not_safe),
    };
    extern char __start_agent_code[];
    extern char __stop_agent_code[];
    wait_from = (uint64_t)(uintptr_t)__start_agent_code;
    wait_to = (uint64_t)(uintptr_t)__stop_agent_code;
    waiting = map_shared(sizeof(*waiting), PROT_READ | PROT_WRITE);
    area = map_shared(AREA_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC);
    return waiting == NULL || area == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
