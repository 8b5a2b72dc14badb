/* The AArch64 probe leaves the machine as it found it, on its fast path and on its slow one, and
 * writes whole records. */
#include "tests/agent/inproc/recorder/probe_code.h"

#include "agent/inproc/recorder/sys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { VECTORS_BEFORE = 512, VECTORS_AFTER = 4096, REGISTERS = 64, VECTORS = 32 };

extern void registers_call(probe_function probe, uint64_t flags, uint8_t *work);

static _Alignas(64) uint8_t work[8192];

static uint64_t stored_register(uint32_t number)
{
    uint64_t value;
    memcpy(&value, work + REGISTERS + 8 * number, sizeof(value));
    return value;
}

static void call_checked(probe_function probe, uint64_t flags)
{
    for (size_t i = 0; i < sizeof(work); i++) {
        work[i] = (uint8_t)(i * 37 + 11);
    }
    registers_call(probe, flags, work);
    for (uint32_t i = 0; i < 30; i++) {
        CHECK(i == 28 || stored_register(i) == UINT64_C(0x0101010101010101) * i + 1);
    }
    CHECK(stored_register(28) == (uint64_t)(uintptr_t)probe);
    CHECK(stored_register(30) == flags);
    for (size_t i = 0; i < VECTORS; i++) {
        CHECK(memcmp(work + VECTORS_BEFORE + 64 * i, work + VECTORS_AFTER + 64 * i, 16) == 0);
    }
}

static void call_with_all_flags(uint32_t calls)
{
    enum { FLAGS_SHIFT = 28 };
    /* The probe's own return is in the link register, which the probe has to keep to come back. */
    const probe_function probe = make_probe(7);
    for (uint32_t i = 0; i < calls; i++) {
        call_checked(probe, (uint64_t)(i * 5 % 16) << FLAGS_SHIFT);
    }
}

static void keep_registers(const char *directory)
{
    const sj_link_welcome welcome = make_welcome(2, 2, SJ_FULL_WAIT);
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    call_with_all_flags(3 * SJ_CHUNK_RECORDS);
}

static void test_probe_keeps_registers_flags_and_vectors(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(keep_registers), 0);
}

static void keep_registers_disarmed(const char *directory)
{
    (void)directory;
    call_with_all_flags(2 * SJ_CHUNK_RECORDS);
}

static void test_probe_keeps_registers_when_disarmed(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(keep_registers_disarmed), 0);
}

static void store_exact_record(const char *directory)
{
    const sj_link_welcome welcome = make_welcome(2, 2, SJ_FULL_DROP_NEW);
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    char path[128];
    snprintf(path, sizeof(path), "%s/1.1.arena", directory);
    uint8_t *base = map_arena_file(path);
    CHECK(base != NULL);
    const uint64_t before = sj_arch_ticks();
    make_probe(0x3fffffff)();
    const uint64_t after = sj_arch_ticks();
    const sj_record *records =
        (const sj_record *)(base + sj_arena_chunk_offset(2, 2, 0, 0) + SJ_CHUNK_HEADER_BYTES);
    const uint64_t mask = (UINT64_C(1) << 48) - 1;
    const uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    CHECK(sj_record_tag(&records[0]) == 0x3fffffff);
    CHECK(sj_record_tag(&records[1]) == (UINT32_C(1) << 30 | 0x3fffffff));
    CHECK(sj_record_tag(&records[2]) == 0);
    CHECK(sj_record_stack(&records[0]) == sj_record_stack(&records[1]));
    CHECK(sj_record_stack(&records[0]) <= here && sj_record_stack(&records[0]) > here - 4096);
    CHECK(sj_record_ticks48(&records[0]) >= (before & mask));
    CHECK(sj_record_ticks48(&records[1]) >= sj_record_ticks48(&records[0]));
    CHECK(sj_record_ticks48(&records[1]) <= (after & mask));
    CHECK(((const sj_arena_header *)base)->clock_hz == sj_arch_ticks_hz());
    CHECK(sj_arch_ticks_hz() != 0);
}

static void test_probe_stores_ticks_stack_and_tag(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(store_exact_record), 0);
}

static void store_first_receiver(const char *directory)
{
    store_receivers(directory, 1);
}

static void test_probe_of_methods_stores_what_the_receiver_is(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(store_first_receiver), 0);
}

static void keep_registers_of_values(const char *directory)
{
    enum { FLAGS_SHIFT = 28 };
    const sj_link_welcome welcome = make_welcome(2, 2, SJ_FULL_DROP_NEW);
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    const probe_function probe =
        make_values_probe(7, sj_value_descriptor(1, SJ_VALUE_STRING) |
                                 (uint32_t)sj_value_descriptor(8, SJ_VALUE_DOUBLE) << 8 |
                                 (uint32_t)sj_value_descriptor(0, SJ_VALUE_LONG) << 16);
    for (uint32_t i = 0; i < SJ_CHUNK_RECORDS; i++) {
        call_checked(probe, (uint64_t)(i * 5 % 16) << FLAGS_SHIFT);
    }
}

/* The emulator has no system call that texts could be read with. */
static void store_all_values(const char *directory)
{
    store_values(directory, false);
}

static void test_probe_of_values_stores_what_registers_hold(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(keep_registers_of_values), 0);
    assert_int_equal(run_in_child(store_all_values), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probe_keeps_registers_flags_and_vectors),
        cmocka_unit_test(test_probe_keeps_registers_when_disarmed),
        cmocka_unit_test(test_probe_stores_ticks_stack_and_tag),
        cmocka_unit_test(test_probe_of_methods_stores_what_the_receiver_is),
        cmocka_unit_test(test_probe_of_values_stores_what_registers_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
