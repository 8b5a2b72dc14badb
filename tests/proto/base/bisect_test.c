#include "proto/base/bisect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static size_t count_below(const uint32_t *numbers, size_t count, uint32_t wanted)
{
    size_t below = 0;
    while (below < count && numbers[below] < wanted) {
        below++;
    }
    return below;
}

static void every_place_of_short_sequences_is_found(void **state)
{
    static const uint32_t numbers[] = {2, 2, 4, 6, 6, 6, 8, 10, 12};
    enum { COUNT = sizeof(numbers) / sizeof(numbers[0]) };
    (void)state;
    for (size_t count = 0; count <= COUNT; count++) {
        for (uint32_t wanted = 0; wanted <= numbers[COUNT - 1] + 1; wanted++) {
            assert_int_equal(SJ_BISECT(0, count, i, numbers[i] < wanted),
                             count_below(numbers, count, wanted));
        }
    }
}

static void the_search_stays_between_its_ends(void **state)
{
    const uint32_t end = UINT32_MAX;
    (void)state;
    assert_int_equal(SJ_BISECT(1, 0U, i, i < 5), 1);
    assert_int_equal(SJ_BISECT(3, 9U, i, i < 2), 3);
    assert_int_equal(SJ_BISECT(3, 9U, i, i < 100), 9);
    assert_int_equal(SJ_BISECT(UINT32_MAX - 3, end, i, i < UINT32_MAX - 1), UINT32_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_place_of_short_sequences_is_found),
                                       cmocka_unit_test(the_search_stays_between_its_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
