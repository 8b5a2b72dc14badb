#include "collector-server/import/interval_sort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CALLS = 5000, THREADS = 3 };

typedef struct seen_calls {
    sj_interval last;
    size_t count;
    uint64_t sum;
} seen_calls;

static sj_status check_order(void *context, const sj_interval *interval)
{
    seen_calls *seen = context;
    const sj_interval *last = &seen->last;
    if (seen->count++ != 0) {
        assert_true(last->thread <= interval->thread);
        if (last->thread == interval->thread) {
            assert_true(last->start_ns <= interval->start_ns);
            if (last->start_ns == interval->start_ns) {
                assert_true(last->end_ns >= interval->end_ns);
                assert_true(last->end_ns > interval->end_ns || last->number < interval->number);
            }
        }
    }
    seen->sum += interval->function + (uint64_t)(interval->end_ns - interval->start_ns);
    seen->last = *interval;
    return SJ_OK;
}

static uint64_t fill(sj_import_log *log)
{
    uint64_t sum = 0;
    uint32_t random = 7;
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t thread;
        assert_int_equal(sj_import_log_thread(log, 1, i + 1, &thread), SJ_OK);
    }
    for (uint32_t i = 0; i < CALLS; i++) {
        random = random * 1664525u + 1013904223u;
        const int64_t start = random >> 24;
        const int64_t length = random >> 16 & 15;
        assert_int_equal(sj_import_log_interval(log, i % THREADS, i + 1, start, start + length),
                         SJ_OK);
        sum += i + 1 + (uint64_t)length;
    }
    return sum;
}

static void calls_are_sorted_with_and_without_runs(void **state)
{
    static const size_t runs[] = {0, 1, 64, CALLS - 1, CALLS, CALLS + 1};
    (void)state;
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        sj_import_log log;
        seen_calls seen = {.count = 0};
        assert_int_equal(sj_import_log_init(&log, "interval_sort_test.db", NULL), SJ_OK);
        log.run_intervals = runs[i];
        const uint64_t sum = fill(&log);
        assert_int_equal(sj_interval_sort(&log, "interval_sort_test.db", check_order, &seen),
                         SJ_OK);
        assert_int_equal(seen.count, CALLS);
        assert_int_equal(seen.sum, sum);
        sj_import_log_deinit(&log);
    }
}

static void entries_and_exits_of_a_mixed_thread_become_whole_calls(void **state)
{
    sj_import_log log;
    seen_calls seen = {.count = 0};
    uint32_t thread;
    (void)state;
    assert_int_equal(sj_import_log_init(&log, "interval_sort_test.db", NULL), SJ_OK);
    assert_int_equal(sj_import_log_thread(&log, 1, 1, &thread), SJ_OK);
    assert_int_equal(sj_import_log_enter(&log, thread, 1, 10), SJ_OK);
    assert_int_equal(sj_import_log_enter(&log, thread, 2, 20), SJ_OK);
    assert_int_equal(sj_import_log_interval(&log, thread, 4, 22, 24), SJ_OK);
    assert_int_equal(sj_import_log_leave(&log, thread, 30, false), SJ_OK);
    assert_int_equal(sj_import_log_enter(&log, thread, 3, 40), SJ_OK);
    assert_int_equal(sj_interval_sort(&log, "interval_sort_test.db", check_order, &seen), SJ_OK);
    assert_int_equal(seen.count, 4);
    const uint64_t open_end = SJ_INTERVAL_OPEN;
    assert_int_equal(seen.sum, 1 + (open_end - 10) + 2 + 10 + 4 + 2 + 3 + (open_end - 40));
    sj_import_log_deinit(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_sorted_with_and_without_runs),
        cmocka_unit_test(entries_and_exits_of_a_mixed_thread_become_whole_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
