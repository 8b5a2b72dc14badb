/* Tests that a handler finds the registers of a caller behind frames of C code. Damaged tables are
 * refused. */
#include "agent/inproc/hooks/native_frame.h"

#include "tests/agent/inproc/recorder/probe_code.h"

#include SJ_ARCH_FILE(core, signal_context.h)

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { UD2_BYTES = 2, WORK_BYTES = 8192, BUSY = 10, RBX = 3, RBP = 6, R12 = 12, R13, R14, R15 };

void registers_call(void (*probe)(void), uint64_t flags, unsigned char *work);

static uint64_t found[SJ_NATIVE_REGISTERS];
static uint64_t functions[2];
static bool is_left;
static volatile uint64_t source = 1;

static sj_native_module module_of(uint64_t pc)
{
    struct dl_find_object object;
    CHECK(_dl_find_object((void *)(uintptr_t)pc, &object) == 0);
    return (sj_native_module){.low = (uint64_t)(uintptr_t)object.dlfo_map_start,
                              .high = (uint64_t)(uintptr_t)object.dlfo_map_end,
                              .index = (uint64_t)(uintptr_t)object.dlfo_eh_frame};
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    sj_stub_state state = sj_context_get(context);
    const sj_native_module module = module_of(state.pc);
    sj_context_get_all(context, found);
    functions[0] = sj_native_function(&module, state.pc);
    is_left = sj_native_leave(&module, false, found);
    functions[1] = sj_native_function(&module, found[SJ_NATIVE_PC] - 1);
    is_left = is_left && sj_native_leave(&module, true, found);
    state.pc += UD2_BYTES;
    sj_context_set(context, &state);
}

static __attribute__((noinline, noipa)) uint64_t fault(uint64_t value)
{
    __asm__ volatile("ud2");
    return value + 1;
}

/* Keeps numbers in all registers that calls preserve. */
static __attribute__((noinline, noipa)) void busy(void)
{
    uint64_t a = source, b = a + source, c = b + source, d = c + source, e = d + source;
    for (uint64_t i = 0; i < source; i++) {
        a += fault(b);
        b += a ^ c;
        c += b ^ d;
        d += c ^ e;
        e += d ^ i;
    }
    source = (a ^ b ^ c ^ d ^ e) == 0 ? 2 : 1;
}

/* The frame pointer locates this frame. */
static __attribute__((noinline, noipa)) void sized(void)
{
    volatile uint8_t *bytes = __builtin_alloca(source * BUSY);
    bytes[0] = (uint8_t)fault(source);
    source = bytes[0] != 0;
}

/* Returns early, so that its table remembers a state. */
static __attribute__((noinline, noipa)) void early(void)
{
    const uint64_t a = source;
    const uint64_t b = fault(a);
    if (b == 0) {
        return;
    }
    source = fault(a + b) != 0 ? a : b;
}

static void leave_to_known(void (*probe)(void))
{
    static _Alignas(64) unsigned char work[WORK_BYTES];
    is_left = false;
    registers_call(probe, 0x202, work);
    assert_true(is_left);
    assert_int_equal(functions[0], (uintptr_t)&fault);
    assert_int_equal(functions[1], (uintptr_t)probe);
    assert_int_equal(found[RBX], 0x2222222222222222);
    assert_int_equal(found[RBP], 0x7777777777777777);
    assert_int_equal(found[R12], 0x1212121212121212);
    assert_int_equal(found[R13], 0x1313131313131313);
    assert_int_equal(found[R14], 0x1414141414141414);
    assert_int_equal(found[R15], 0x1515151515151515);
    assert_true(found[SJ_NATIVE_PC] - (uintptr_t)&registers_call < 4096);
}

static void callers_registers_are_found(void **state)
{
    const struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    (void)state;
    assert_int_equal(sigaction(SIGILL, &action, NULL), 0);
    leave_to_known(busy);
    leave_to_known(sized);
    leave_to_known(early);
}

/* Moves the end of the module and the address of the index. Nothing outside is read, and the
 * registers keep their values where the table has no rule. */
static void damaged_tables_are_refused(void **state)
{
    (void)state;
    const sj_native_module whole = module_of((uintptr_t)&busy);
    const sj_native_module no_index = {.low = whole.low, .high = whole.high, .index = whole.low};
    const sj_native_module outside = {.low = whole.low, .high = whole.high, .index = 1};
    uint64_t registers[SJ_NATIVE_REGISTERS] = {0};
    registers[SJ_NATIVE_PC] = (uintptr_t)&busy;
    assert_int_equal(sj_native_function(&whole, (uintptr_t)&busy), (uintptr_t)&busy);
    assert_int_equal(sj_native_function(&no_index, (uintptr_t)&busy), 0);
    assert_false(sj_native_leave(&outside, false, registers));
    for (uint64_t high = whole.low; high < whole.index + 12; high++) {
        const sj_native_module cut = {.low = whole.low, .high = high, .index = whole.index};
        assert_false(sj_native_leave(&cut, false, registers));
    }
    assert_int_equal(registers[SJ_NATIVE_PC], (uintptr_t)&busy);
    assert_int_equal(registers[SJ_NATIVE_SP], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(callers_registers_are_found),
                                       cmocka_unit_test(damaged_tables_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
