/* The probe leaves the machine as it found it, on its fast path and on its slow one. */
#include "tests/agent/recorder/probe_code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { VECTORS_BEFORE = 512, VECTORS_AFTER = 4096, MASKS_AFTER = VECTORS_AFTER + 2048 };

extern void registers_call(probe_function probe, uint64_t flags, uint8_t *work);

static _Alignas(64) uint8_t work[8192];

static void check_general(uint64_t flags)
{
    static const uint64_t expected[] = {0x1111111111111111, 0x2222222222222222, 0x3333333333333333,
                                        0x4444444444444444, 0x5555555555555555, 0x6666666666666666,
                                        0x7777777777777777, 0x0808080808080808, 0x0909090909090909,
                                        0x1010101010101010, 0x1111111111111101, 0x1212121212121212,
                                        0x1313131313131313, 0x1414141414141414, 0x1515151515151515};
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        uint64_t found;
        memcpy(&found, work + 64 + 8 * i, sizeof(found));
        CHECK(found == expected[i]);
    }
    uint64_t found_flags;
    memcpy(&found_flags, work + 184, sizeof(found_flags));
    CHECK((found_flags & 0xcd5) == (flags & 0xcd5));
}

static void check_vectors(bool wide)
{
    const size_t count = wide ? 32 : 16;
    const size_t bytes = wide ? 64 : 32;
    for (size_t i = 0; i < count; i++) {
        CHECK(memcmp(work + VECTORS_BEFORE + 64 * i, work + VECTORS_AFTER + 64 * i, bytes) == 0);
    }
    if (wide) {
        CHECK(memcmp(work + VECTORS_BEFORE + 8, work + MASKS_AFTER + 8, 56) == 0);
    }
}

/* Calls the probe once with known registers; tells whether the slow path ran. */
static void call_checked(probe_function probe, uint64_t flags)
{
    const bool wide = __builtin_cpu_supports("avx512bw");
    for (size_t i = 1; i < sizeof(work); i++) {
        work[i] = (uint8_t)(i * 37 + 11);
    }
    work[0] = wide;
    registers_call(probe, flags, work);
    check_general(flags);
    check_vectors(wide);
}

/* All arithmetic flags and the direction flag, in turns, over several chunk changes, a full ring
 * with its waits and its discarding: each of those enters the slow path in another way. */
static void keep_registers(const char *directory)
{
    enum { CALLS = 3 * SJ_CHUNK_RECORDS };
    static const uint64_t single_flags[] = {0x001, 0x004, 0x010, 0x040, 0x080, 0x400, 0x800};
    const sj_link_welcome welcome = make_welcome(2, 2, SJ_FULL_BLOCK);
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    const probe_function probe = make_probe(7);
    for (uint32_t i = 0; i < CALLS; i++) {
        uint64_t flags = 0x202;
        for (uint32_t bit = 0; bit < 7; bit++) {
            flags |= i * 5 >> bit & 1 ? single_flags[bit] : 0;
        }
        call_checked(probe, flags);
    }
}

static void test_probe_keeps_registers_flags_and_vectors(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(keep_registers), 0);
}

/* With registers that hold no object. */
static void keep_registers_of_methods(const char *directory)
{
    const sj_link_welcome welcome = make_welcome(2, 2, SJ_FULL_DROP_NEW);
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    for (uint8_t receiver = 1; receiver <= 2; receiver++) {
        const probe_function probe = make_receiver_probe(7, receiver);
        for (uint32_t i = 0; i < 2 * SJ_CHUNK_RECORDS; i++) {
            call_checked(probe, 0x202 | (i & 1) | (i & 4));
        }
    }
}

static void store_first_receiver(const char *directory)
{
    store_receivers(directory, 1);
}

static void store_second_receiver(const char *directory)
{
    store_receivers(directory, 2);
}

static void test_probe_of_methods_stores_what_the_receiver_is(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(keep_registers_of_methods), 0);
    assert_int_equal(run_in_child(store_first_receiver), 0);
    assert_int_equal(run_in_child(store_second_receiver), 0);
}

/* With a pointer that leads nowhere, among others. */
static void keep_registers_of_values(const char *directory)
{
    const sj_link_welcome welcome = make_welcome(2, 2, SJ_FULL_DROP_NEW);
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_OK);
    const probe_function probe =
        make_values_probe(7, sj_value_descriptor(1, SJ_VALUE_STRING) |
                                 (uint32_t)sj_value_descriptor(8, SJ_VALUE_DOUBLE) << 8 |
                                 (uint32_t)sj_value_descriptor(0, SJ_VALUE_LONG) << 16 |
                                 (uint32_t)sj_value_descriptor(0, SJ_VALUE_FLOAT) << 24);
    for (uint32_t i = 0; i < SJ_CHUNK_RECORDS; i++) {
        call_checked(probe, 0x202 | (i & 1) | (i & 4) | (i & 2) << 9);
    }
}

static void store_all_values(const char *directory)
{
    store_values(directory, true);
}

static void test_probe_of_values_stores_what_registers_hold(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(keep_registers_of_values), 0);
    assert_int_equal(run_in_child(store_all_values), 0);
}

/* The same when nothing was ever started: every probe leads to memory that nobody reads. */
static void keep_registers_disarmed(const char *directory)
{
    (void)directory;
    const probe_function probe = make_probe(7);
    for (uint32_t i = 0; i < 3 * SJ_CHUNK_RECORDS; i++) {
        call_checked(probe, 0x202 | (i & 1) | (i & 4));
    }
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
    const uint64_t before = __builtin_ia32_rdtsc();
    make_probe(0x3fffffff)();
    const uint64_t after = __builtin_ia32_rdtsc();
    const sj_record *records =
        (const sj_record *)(base + sj_arena_chunk_offset(2, 2, 0, 0) + SJ_CHUNK_HEADER_BYTES);
    const uint64_t mask = (UINT64_C(1) << 48) - 1;
    CHECK(sj_record_tag(&records[0]) == 0x3fffffff);
    CHECK(sj_record_tag(&records[1]) == (UINT32_C(1) << 30 | 0x3fffffff));
    CHECK(sj_record_tag(&records[2]) == 0);
    CHECK(sj_record_stack(&records[0]) == sj_record_stack(&records[1]));
    CHECK(sj_record_stack(&records[0]) < (uint64_t)(uintptr_t)__builtin_frame_address(0));
    CHECK(sj_record_stack(&records[0]) > (uint64_t)(uintptr_t)__builtin_frame_address(0) - 4096);
    CHECK(sj_record_ticks48(&records[0]) >= (before & mask));
    CHECK(sj_record_ticks48(&records[1]) > sj_record_ticks48(&records[0]));
    CHECK(sj_record_ticks48(&records[1]) <= (after & mask));
    const sj_thread_slot *slot = arena_slot(base, 0);
    CHECK(slot->tid == (uint32_t)getpid());
    CHECK(slot->stack_low < sj_record_stack(&records[0]));
    CHECK(slot->stack_high > sj_record_stack(&records[0]));
    CHECK(atomic_load(&slot->state) == SJ_THREAD_LIVE);
}

static void test_probe_stores_ticks_stack_and_tag(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(store_exact_record), 0);
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
