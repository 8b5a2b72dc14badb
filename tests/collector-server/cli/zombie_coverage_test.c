/* The sentence that says how much of the heap was watched. */
#include "collector-server/cli/zombie_coverage.h"

#include "tests/support/check.h"

#include <stdlib.h>

static void expect(const sj_zombie_coverage *coverage, const char *wanted)
{
    char text[SJ_ZOMBIE_COVERAGE_BYTES];
    assert_string_equal(sj_zombie_coverage_text(coverage, text), wanted);
}

static void each_reason_has_its_share_and_its_remedy(void **state)
{
    (void)state;
    expect(&(sj_zombie_coverage){.allocations = 1200000,
                                 .guarded = 36000,
                                 .recycled = 1,
                                 .no_block = 600000,
                                 .over_memory = 324000,
                                 .bad_size = 120000,
                                 .refused = 120000},
           "watched 3 % of 1200000 allocations; 50 % found no free block (raise \"blocks\"); 27 % "
           "would have exceeded the memory (raise \"memory\"); 10 % were empty, larger than "
           "1 MiB or resized in small steps; 10 % were refused by the kernel; 1 block reused after "
           "the free");
    expect(&(sj_zombie_coverage){.allocations = 5000, .guarded = 1, .not_sampled = 4999},
           "watched less than 0.1 % of about 5000 allocations; more than 99.9 % left out by "
           "sampling (lower \"one_in\")");
}

/* A percentage is rounded neither to all nor to none. */
static void percentages_are_never_rounded_to_all_or_none(void **state)
{
    (void)state;
    expect(&(sj_zombie_coverage){.allocations = 7, .guarded = 7}, "watched 100 % of 7 allocations");
    expect(&(sj_zombie_coverage){.allocations = 10000, .guarded = 9999, .bad_size = 1},
           "watched more than 99.9 % of 10000 allocations; less than 0.1 % were empty, larger "
           "than 1 MiB or resized in small steps");
    expect(&(sj_zombie_coverage){.allocations = 1000, .guarded = 998, .no_block = 2},
           "watched 99.8 % of 1000 allocations; 0.2 % found no free block (raise \"blocks\")");
    expect(&(sj_zombie_coverage){.allocations = 1, .refused = 1},
           "watched 0 % of 1 allocation; 100 % were refused by the kernel");
}

static void delayed_frees_and_kept_objects_are_counted_separately(void **state)
{
    (void)state;
    expect(&(sj_zombie_coverage){.kept = 3, .not_kept = 1}, "kept 3 of 4 freed objects");
    expect(&(sj_zombie_coverage){.delayed = 1}, "delayed 1 free");
    expect(&(sj_zombie_coverage){.allocations = 2, .guarded = 2, .delayed = 9, .kept = 5},
           "watched 100 % of 2 allocations; delayed 9 frees; kept 5 of 5 freed objects");
}

static void json_has_each_sum(void **state)
{
    char *text = NULL;
    size_t size = 0;
    (void)state;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    sj_zombie_coverage_json(file, &(sj_zombie_coverage){.allocations = 9,
                                                        .guarded = 2,
                                                        .recycled = 1,
                                                        .not_sampled = 3,
                                                        .bad_size = 4,
                                                        .no_block = 5,
                                                        .over_memory = 6,
                                                        .refused = 7,
                                                        .delayed = 8,
                                                        .kept = 10,
                                                        .not_kept = 11});
    fclose(file);
    assert_string_equal(text,
                        "{\"allocations\": 9, \"guarded\": 2, \"recycled\": 1, \"not_sampled\": 3, "
                        "\"bad_size\": 4, \"no_block\": 5, \"over_memory\": 6, \"refused\": 7, "
                        "\"delayed\": 8, \"kept\": 10, \"not_kept\": 11}");
    free(text);
}

/* The longest sentence is not cut. */
static void the_longest_sentence_fits(void **state)
{
    (void)state;
    char text[SJ_ZOMBIE_COVERAGE_BYTES];
    const int64_t most = INT64_MAX / 8;
    const sj_zombie_coverage coverage = {.allocations = INT64_MAX,
                                         .guarded = 1,
                                         .recycled = most,
                                         .not_sampled = 1,
                                         .bad_size = 1,
                                         .no_block = 1,
                                         .over_memory = 1,
                                         .refused = 1,
                                         .delayed = most,
                                         .kept = most,
                                         .not_kept = most};
    const char *end = strstr(sj_zombie_coverage_text(&coverage, text), " freed objects");
    assert_non_null(end);
    assert_string_equal(end, " freed objects");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_reason_has_its_share_and_its_remedy),
        cmocka_unit_test(percentages_are_never_rounded_to_all_or_none),
        cmocka_unit_test(delayed_frees_and_kept_objects_are_counted_separately),
        cmocka_unit_test(json_has_each_sum), cmocka_unit_test(the_longest_sentence_fits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
