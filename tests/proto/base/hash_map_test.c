/* Compares the hash map with a plain array of the same entries. */
#include "proto/base/hash_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_keys_are_found_after_any_removals(void **state)
{
    enum { KEYS = 3000 };
    sj_hash_map map = {0};
    static bool held[KEYS];
    (void)state;
    srand(1);
    for (int round = 0; round < 40000; round++) {
        const uint32_t key = (uint32_t)rand() % KEYS;
        const sj_hash_entry entry = {.key = key / 2 * 4096, .sub = key % 2 + 1, .first = key};
        sj_hash_entry *found = sj_hash_map_find(&map, entry.key, entry.sub);
        assert_true((found != NULL) == held[key]);
        if (found != NULL) {
            assert_int_equal(found->first, key);
            sj_hash_map_remove(&map, found);
        } else {
            assert_int_equal(sj_hash_map_put(&map, &entry), SJ_OK);
        }
        held[key] = !held[key];
    }
    sj_hash_map_deinit(&map);
}

static void test_an_empty_map_finds_nothing(void **state)
{
    sj_hash_map map = {0};
    (void)state;
    assert_null(sj_hash_map_find(&map, 1, 1));
    sj_hash_map_deinit(&map);
}

/* A key of 0 is valid if `sub` is not 0. A second put replaces the first one. */
static void test_a_key_of_zero_and_a_replacement(void **state)
{
    sj_hash_map map = {0};
    (void)state;
    assert_int_equal(sj_hash_map_put(&map, &(sj_hash_entry){.sub = 1, .first = 5}), SJ_OK);
    assert_int_equal(sj_hash_map_put(&map, &(sj_hash_entry){.sub = 1, .first = 6}), SJ_OK);
    assert_int_equal(map.count, 1);
    assert_int_equal(sj_hash_map_find(&map, 0, 1)->first, 6);
    assert_null(sj_hash_map_find(&map, 0, 2));
    sj_hash_map_deinit(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_are_found_after_any_removals),
        cmocka_unit_test(test_an_empty_map_finds_nothing),
        cmocka_unit_test(test_a_key_of_zero_and_a_replacement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
