/* Tests which event of an object's history cancels which. */
#include "collector-server/store/owner_pairs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { EVENTS = 6 };

static void check(sj_owner_event *events, size_t count, const int *partners)
{
    sj_pair_owners(events, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(events[i].partner, partners[i]);
    }
}

static void test_the_surest_pairs_are_made_first(void **state)
{
    (void)state;
    sj_owner_event events[EVENTS] = {
        {"allocation", "main", 0}, {"retain", "-[Nest keep:]", 0},    {"retain", "visit", 0},
        {"release", "visit", 0},   {"release", "+[Nest dropAll]", 0}, {"release", "other", 0}};
    check(events, EVENTS, (const int[]){5, 4, 3, 2, 1, 0});
}

static void test_events_without_a_partner_stay_single(void **state)
{
    (void)state;
    sj_owner_event released[] = {{"allocation", "main", 0},
                                 {"autorelease", "main", 0},
                                 {"release", "zoo::keeper::stop()", 0}};
    check(released, 3, (const int[]){1, 0, -1});
    sj_owner_event leaked[] = {{"allocation", "", 0}, {"retain", "", 0}, {"release", "", 0}};
    check(leaked, 3, (const int[]){-1, 2, 1});
    sj_owner_event scopes[] = {{"retain", "zoo::keeper::start()", 0},
                               {"retain", "zoo::cage::open()", 0},
                               {"release", "zoo::keeper::stop()", 0}};
    check(scopes, 3, (const int[]){2, -1, 0});
}

static void test_a_later_event_cancels_no_earlier_one(void **state)
{
    (void)state;
    /* A later event does not cancel an earlier one. */
    sj_owner_event events[] = {{"release", "f", 0}, {"retain", "f", 0}, {"unknown", "f", 0}};
    check(events, 3, (const int[]){-1, -1, -1});
    sj_pair_owners(NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_surest_pairs_are_made_first),
                                       cmocka_unit_test(test_events_without_a_partner_stay_single),
                                       cmocka_unit_test(test_a_later_event_cancels_no_earlier_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
