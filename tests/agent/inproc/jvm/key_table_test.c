/* Keys have the number that was set last, and a table that is full says so. */
#include "agent/inproc/jvm/key_table.h"
#include "tests/support/check.h"

enum { ROOM = (1 << SJ_KEY_TABLE_BITS) / 4 * 3, STEP = 4096 };

static void a_full_table_takes_no_further_key(void **state)
{
    sj_key_table table = {0};
    (void)state;
    assert_false(sj_key_table_set(&table, 1, 1)); /* before it is made */
    assert_true(sj_key_table_make(&table) && sj_key_table_make(&table));
    for (uint64_t i = 1; i <= ROOM; i++) {
        assert_true(sj_key_table_set(&table, i * STEP, (uint32_t)i));
    }
    assert_false(sj_key_table_set(&table, (ROOM + 1) * (uint64_t)STEP, 1));
    assert_int_equal(sj_key_table_get(&table, (ROOM + 1) * (uint64_t)STEP), 0);
    assert_true(sj_key_table_set(&table, STEP, 77)); /* it is there already */
    assert_int_equal(sj_key_table_get(&table, STEP), 77);
    for (uint64_t i = 2; i <= ROOM; i++) {
        assert_int_equal(sj_key_table_get(&table, i * STEP), i);
    }
    sj_key_table_drop(&table);
    assert_true(sj_key_table_make(&table));
    assert_true(sj_key_table_set(&table, 5, 6));
    assert_int_equal(sj_key_table_get(&table, 5), 6);
    assert_int_equal(sj_key_table_get(&table, STEP), 0);
    sj_key_table_drop(&table);
    sj_key_table_drop(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_full_table_takes_no_further_key)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
