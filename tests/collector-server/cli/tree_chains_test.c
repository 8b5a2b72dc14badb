/* Tests which callers of a tree are folded into one line. Callers are folded if their callee is an
 * only callee. Callers with siblings or with self time are not folded. */
#include "collector-server/cli/tree_chains.h"
#include "tests/support/check.h"

/* Paths depth first, each with the share of all time that is its self time. */
typedef struct tree_row {
    int64_t depth;
    double self_share;
    size_t folded; /* expected */
    int64_t level; /* expected */
} tree_row;

static void check_tree(const tree_row *rows, size_t count, double least_share)
{
    sj_tree_paths paths = {0};
    for (size_t i = 0; i < count; i++) {
        const sj_tree_path path = {.depth = rows[i].depth,
                                   .share = 1,
                                   .total_ns = 1000,
                                   .self_ns = (int64_t)(rows[i].self_share * 1000),
                                   .name = "f"};
        assert_int_equal(sj_tree_paths_add(&paths, &path), SJ_OK);
    }
    sj_tree_paths_fold(&paths, least_share);
    for (size_t i = 0; i < count; i++) {
        if (paths.paths[i].folded != rows[i].folded || paths.paths[i].level != rows[i].level) {
            fail_msg("path %zu: folded %zu, level %lld", i, paths.paths[i].folded,
                     (long long)paths.paths[i].level);
        }
    }
    sj_tree_paths_deinit(&paths);
}

static void chains_of_only_callees_are_folded(void **state)
{
    (void)state;
    static const tree_row rows[] = {{0, 0, 0, 0}, {1, 0, 3, 1}, {2, 0, 0, 1}, {3, 0, 0, 1},
                                    {4, 1, 0, 2}, {0, 0, 0, 0}, {1, 0, 0, 1}, {2, 0, 0, 2}};
    check_tree(rows, sizeof(rows) / sizeof(rows[0]), 0.1); /* one link alone is not folded */
}

/* The first of two callees has an only callee. That callee is a link, and the first is not. */
static void a_call_with_siblings_is_not_folded(void **state)
{
    (void)state;
    static const tree_row rows[] = {{0, 0, 0, 0}, {1, 0, 0, 1}, {2, 0, 0, 2}, {3, 0, 0, 3},
                                    {1, 0, 0, 1}, {2, 0, 2, 2}, {3, 0, 0, 2}, {4, 0, 0, 3}};
    check_tree(rows, sizeof(rows) / sizeof(rows[0]), 0.1);
}

static void a_call_that_takes_time_itself_ends_a_chain(void **state)
{
    (void)state;
    static const tree_row rows[] = {{0, 0, 0, 0},    {1, 0.09, 2, 1}, {2, 0, 0, 1}, {3, 0.1, 0, 2},
                                    {4, 0.09, 2, 3}, {5, 0, 0, 3},    {6, 0, 0, 4}};
    check_tree(rows, sizeof(rows) / sizeof(rows[0]), 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_of_only_callees_are_folded),
        cmocka_unit_test(a_call_with_siblings_is_not_folded),
        cmocka_unit_test(a_call_that_takes_time_itself_ends_a_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
