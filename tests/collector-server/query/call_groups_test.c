#include "collector-server/query/call_groups.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void groups_are_found_again(void **state)
{
    (void)state;
    sj_call_groups groups = {0};
    for (int round = 0; round < 2; ++round) {
        for (int64_t i = 0; i < 5000; ++i) {
            const int64_t keys[SJ_GROUP_KEYS] = {i % 7, -i, [SJ_GROUP_KEYS - 1] = i * 1000};
            uint32_t number;
            assert_int_equal(sj_call_groups_find(&groups, keys, &number), SJ_OK);
            assert_int_equal(number, i);
            assert_int_equal(sj_call_groups_add(&groups, number, i + round, 1, true), SJ_OK);
        }
    }
    assert_int_equal(groups.count, 5000);
    const sj_call_group *group = &groups.groups[1234];
    assert_int_equal(group->calls, 2);
    assert_int_equal(group->duration_ns, 2469);
    assert_int_equal(group->self_ns, 2);
    assert_int_equal(group->min_ns, 1234);
    assert_int_equal(group->max_ns, 1235);
    assert_int_equal(sj_call_groups_quantile(group, 0.0), 1234);
    assert_int_equal(sj_call_groups_quantile(group, 1.0), 1235);
    sj_call_groups_clear(&groups);
    assert_int_equal(groups.count, 0);
}

static void more_groups_than_may_be_are_refused(void **state)
{
    (void)state;
    sj_call_groups groups = {0};
    uint32_t number;
    for (int64_t i = 0; i < SJ_GROUPS_MAX; ++i) {
        const int64_t keys[SJ_GROUP_KEYS] = {i};
        assert_int_equal(sj_call_groups_find(&groups, keys, &number), SJ_OK);
    }
    const int64_t one_more[SJ_GROUP_KEYS] = {SJ_GROUPS_MAX};
    const int64_t first[SJ_GROUP_KEYS] = {0};
    assert_int_equal(sj_call_groups_find(&groups, one_more, &number), SJ_ELIMIT);
    assert_int_equal(sj_call_groups_find(&groups, first, &number), SJ_OK);
    assert_int_equal(number, 0);
    sj_call_groups_clear(&groups);
}

static void histograms_are_bounded_together(void **state)
{
    (void)state;
    sj_call_groups groups = {0};
    sj_status status = SJ_OK;
    int64_t count = 0;
    for (; status == SJ_OK && count < SJ_GROUPS_MAX; ++count) {
        const int64_t keys[SJ_GROUP_KEYS] = {count};
        uint32_t number;
        assert_int_equal(sj_call_groups_find(&groups, keys, &number), SJ_OK);
        status = sj_call_groups_add(&groups, number, 0, 0, true);
        if (status == SJ_OK) {
            status = sj_call_groups_add(&groups, number, INT64_C(1) << 62, 0, true);
        }
    }
    assert_int_equal(status, SJ_ELIMIT);
    assert_true(groups.histogram_bytes < SJ_GROUPS_MAX_HISTOGRAM_BYTES + (1 << 16));
    sj_call_groups_clear(&groups);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_found_again),
        cmocka_unit_test(more_groups_than_may_be_are_refused),
        cmocka_unit_test(histograms_are_bounded_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
