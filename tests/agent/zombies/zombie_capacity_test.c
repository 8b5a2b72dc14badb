/* Tests how many blocks are guarded at once if the policy does not say. */
#include "agent/zombies/zombie_capacity.h"

#include "tests/support/check.h"
#include "tests/support/page_size.h"

static sj_zombie_settings choose(uint32_t slots, uint32_t memory_kib, uint64_t free_bytes)
{
    sj_zombie_settings settings = {.slots = slots, .memory_kib = memory_kib, .stack_bytes = 2048};
    sj_zombie_capacity_choose(&settings, free_bytes);
    return settings;
}

static void free_memory_chooses_the_capacity_between_two_limits(void **state)
{
    (void)state;
    static const struct {
        uint64_t free_bytes;
        uint32_t slots, memory_kib, freed_slots;
    } wanted[] = {{0, 4096, 65536, 4096},
                  {UINT64_C(256) << 20, 4096, 65536, 4096},
                  {UINT64_C(16) * 8704 * 60000, 60000, 360000, 7500},
                  {UINT64_C(64) << 30, 131072, 786432, 16384},
                  {UINT64_MAX, 131072, 786432, 16384}};
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        const sj_zombie_settings got = choose(0, 0, wanted[i].free_bytes);
        assert_int_equal(got.slots, wanted[i].slots);
        assert_int_equal(got.memory_kib, wanted[i].memory_kib);
        assert_int_equal(got.freed_slots, wanted[i].freed_slots);
    }
}

/* A policy that raises `blocks` does not have to raise `memory`, too. */
static void the_policy_overrides_the_chosen_capacity(void **state)
{
    (void)state;
    sj_zombie_settings got = choose(60000, 0, 0);
    assert_int_equal(got.slots, 60000);
    assert_int_equal(got.memory_kib, 360000);
    assert_int_equal(got.freed_slots, 0);
    got = choose(16, 0, UINT64_MAX);
    assert_int_equal(got.slots, 16);
    assert_int_equal(got.memory_kib, 65536);
    got = choose(0, 40000, UINT64_MAX);
    assert_int_equal(got.slots, 10000);
    assert_int_equal(got.memory_kib, 40000);
    got = choose(512, 1024, UINT64_MAX);
    assert_int_equal(got.slots, 512);
    assert_int_equal(got.memory_kib, 1024);
}

static void larger_pages_need_more_memory(void **state)
{
    (void)state;
    page_bytes = 65536;
    const sj_zombie_settings chosen = choose(0, 0, UINT64_C(16) * (8704 + 61440) * 60000);
    assert_int_equal(chosen.slots, 60000);
    assert_int_equal(chosen.memory_kib, 60000 * 96);
    assert_int_equal(choose(0, 640000, UINT64_MAX).slots, 10000);
    page_bytes = 4096;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_memory_chooses_the_capacity_between_two_limits),
        cmocka_unit_test(the_policy_overrides_the_chosen_capacity),
        cmocka_unit_test(larger_pages_need_more_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
