/* A leaf stub records if the ring has space, and jumps into the wrapper if the ring is full. A
 * closed stub always jumps into the wrapper. */
#include "agent/inproc/jvm/leaf.h"
#include "agent/inproc/recorder/recorder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { PAGE = 4096, ENTRY_AT = 1024, FROM_WRAPPER = 42, FUNCTION = 7 };

/* The first instruction of a compiled wrapper, then code that shows that the wrapper ran. */
static const uint8_t wrapper[] = {0x89, 0x84,         0x24, 0x00, 0xf0,
                                  0xff, 0xff,                        /* mov %eax, -4096(%rsp) */
                                  0xb8, FROM_WRAPPER, 0,    0,    0, /* mov $42, %eax */
                                  0xc3};                             /* ret */

/* Calls the stub as compiled Java code does, with the function's id in %esi. */
static uint32_t call(const uint8_t *stub)
{
    uint32_t result = 0;
    uint32_t function = FUNCTION;
    __asm__ volatile("sub $8192, %%rsp; call *%2; add $8192, %%rsp"
                     : "=&a"(result), "+S"(function)
                     : "r"(stub)
                     : "rcx", "rdx", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
    return result;
}

static void test_a_stub_records_until_it_is_closed(void **state)
{
    static uint64_t window[PAGE] __attribute__((aligned(4 * PAGE)));
    /* The stub reads from the bits of this address that the chunk has space. */
    uint64_t *space = window + PAGE / sizeof(uint64_t);
    (void)state;
    uint8_t *code =
        mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(code, MAP_FAILED);
    memcpy(code + ENTRY_AT, wrapper, sizeof(wrapper));
    assert_int_equal(sj_arch_leaf_entry_bytes((uint64_t)(uintptr_t)(code + ENTRY_AT)), 7);
    sj_arch_leaf_emit(code, SJ_RECORD_ENTER, 0, (uint64_t)(uintptr_t)(code + ENTRY_AT));

    sj_recorder_self.cursor = 0;
    assert_int_equal(call(code), FROM_WRAPPER);
    sj_recorder_self.cursor = (uint64_t)(uintptr_t)space;
    (void)call(code);
    assert_int_equal(sj_recorder_self.cursor, (uint64_t)(uintptr_t)(space + 2));
    assert_int_equal(space[1] >> 32, FUNCTION);

    sj_arch_leaf_close(code);
    assert_int_equal(call(code), FROM_WRAPPER);
    assert_int_equal(sj_recorder_self.cursor, (uint64_t)(uintptr_t)(space + 2));
    sj_recorder_self.cursor = 0;
    munmap(code, PAGE);
}

static void test_a_muted_function_is_not_recorded(void **state)
{
    static uint64_t window[PAGE] __attribute__((aligned(4 * PAGE)));
    static uint8_t muted[FUNCTION + 1];
    uint64_t *space = window + PAGE / sizeof(uint64_t);
    (void)state;
    uint8_t *code =
        mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(code, MAP_FAILED);
    memcpy(code + ENTRY_AT, wrapper, sizeof(wrapper));
    sj_arch_leaf_emit(code, SJ_RECORD_LEAVE, (uint64_t)(uintptr_t)muted,
                      (uint64_t)(uintptr_t)(code + ENTRY_AT));

    sj_recorder_self.cursor = (uint64_t)(uintptr_t)space;
    muted[FUNCTION] = 1;
    assert_int_not_equal(call(code), FROM_WRAPPER);
    assert_int_equal(sj_recorder_self.cursor, (uint64_t)(uintptr_t)space);
    sj_recorder_self.cursor = 0; /* The ring is full. */
    assert_int_not_equal(call(code), FROM_WRAPPER);
    muted[FUNCTION] = 0;
    sj_recorder_self.cursor = (uint64_t)(uintptr_t)space;
    (void)call(code);
    assert_int_equal(sj_recorder_self.cursor, (uint64_t)(uintptr_t)(space + 2));
    assert_int_equal(space[1] >> 32, sj_record_make_tag(SJ_RECORD_LEAVE, FUNCTION));
    sj_recorder_self.cursor = 0;
    munmap(code, PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_stub_records_until_it_is_closed),
                                       cmocka_unit_test(test_a_muted_function_is_not_recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
