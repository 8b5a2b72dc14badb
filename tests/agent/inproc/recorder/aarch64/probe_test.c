/* Tests that the AArch64 probe keeps all registers, on its fast path and on its slow path, and
 * writes complete records. */
#include "tests/agent/inproc/recorder/aarch64/call_checked.h"

#include "agent/inproc/recorder/sys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void call_with_all_flags(uint32_t calls)
{
    const probe_function probe = make_probe(7);
    for (uint32_t i = 0; i < calls; i++) {
        call_checked(probe, some_flags(i), ALL_FLAGS);
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
    store_receivers(directory, 1, 0);
}

static void store_first_receiver_uncounted(const char *directory)
{
    store_receivers(directory, 1, SJ_LINK_RUNTIME_COUNTING);
}

static void test_probe_of_methods_stores_what_the_receiver_is(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(store_first_receiver), 0);
    assert_int_equal(run_in_child(store_first_receiver_uncounted), 0);
}

static void keep_registers_of_values(const char *directory)
{
    const sj_link_welcome welcome = make_welcome(2, 2, SJ_FULL_DROP_NEW);
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    const probe_function probe =
        make_values_probe(7, sj_value_descriptor(1, SJ_VALUE_STRING) |
                                 (uint32_t)sj_value_descriptor(8, SJ_VALUE_DOUBLE) << 8 |
                                 (uint32_t)sj_value_descriptor(0, SJ_VALUE_LONG) << 16);
    for (uint32_t i = 0; i < SJ_CHUNK_RECORDS; i++) {
        call_checked(probe, some_flags(i), ALL_FLAGS);
    }
}

/* The emulator lacks the system call that reads texts. */
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
