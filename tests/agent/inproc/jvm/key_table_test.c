/* A key has the number that was set last. A full table refuses new keys. */
#include "agent/inproc/jvm/key_table.h"
#include "tests/support/check.h"

enum { CAPACITY = (1 << SJ_KEY_TABLE_BITS) / 4 * 3, STEP = 4096 };

static void a_full_table_refuses_new_keys(void **state)
{
    sj_key_table table = {0};
    (void)state;
    assert_false(sj_key_table_set(&table, 1, 1)); /* The table is not allocated yet. */
    assert_true(sj_key_table_init(&table) && sj_key_table_init(&table));
    for (uint64_t i = 1; i <= CAPACITY; i++) {
        assert_true(sj_key_table_set(&table, i * STEP, (uint32_t)i));
    }
    assert_false(sj_key_table_set(&table, (CAPACITY + 1) * (uint64_t)STEP, 1));
    assert_int_equal(sj_key_table_get(&table, (CAPACITY + 1) * (uint64_t)STEP), 0);
    assert_true(sj_key_table_set(&table, STEP, 77)); /* The key is in the table already. */
    assert_int_equal(sj_key_table_get(&table, STEP), 77);
    for (uint64_t i = 2; i <= CAPACITY; i++) {
        assert_int_equal(sj_key_table_get(&table, i * STEP), i);
    }
    sj_key_table_deinit(&table);
    assert_true(sj_key_table_init(&table));
    assert_true(sj_key_table_set(&table, 5, 6));
    assert_int_equal(sj_key_table_get(&table, 5), 6);
    assert_int_equal(sj_key_table_get(&table, STEP), 0);
    sj_key_table_deinit(&table);
    sj_key_table_deinit(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_full_table_refuses_new_keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
