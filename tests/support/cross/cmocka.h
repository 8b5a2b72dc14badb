/* The part of cmocka's interface that the agent's tests use, for machines without cmocka. */
#ifndef SJ_TESTS_SUPPORT_CROSS_CMOCKA_H
#define SJ_TESTS_SUPPORT_CROSS_CMOCKA_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
};

#define cmocka_unit_test(test)                                                                     \
    {                                                                                              \
#test, test                                                                                \
    }

#define assert_int_equal(left, right)                                                              \
    do {                                                                                           \
        const long long left_ = (long long)(left);                                                 \
        const long long right_ = (long long)(right);                                               \
        if (left_ != right_) {                                                                     \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #left, left_,     \
                    right_);                                                                       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define assert_true(condition) assert_int_equal(!!(condition), 1)
#define assert_memory_equal(left, right, bytes)                                                    \
    assert_int_equal(memcmp((left), (right), (bytes)), 0)

#define cmocka_run_group_tests(tests, setup, teardown)                                             \
    run_tests((tests), sizeof(tests) / sizeof((tests)[0]), (setup), (teardown))

static inline int run_tests(const struct CMUnitTest *tests, size_t count, int (*setup)(void **),
                            int (*teardown)(void **))
{
    const char *only = getenv("CMOCKA_TEST_FILTER");
    size_t run_count = 0;
    void *state = NULL;
    if (setup != NULL && setup(&state) != 0) {
        fprintf(stderr, "setup failed\n");
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        if (only != NULL && strcmp(only, tests[i].name) != 0) {
            continue;
        }
        run_count++;
        fprintf(stderr, "[ RUN ] %s\n", tests[i].name);
        tests[i].run(&state);
    }
    if (teardown != NULL && teardown(&state) != 0) {
        fprintf(stderr, "teardown failed\n");
        return 1;
    }
    fprintf(stderr, "%zu tests passed\n", run_count);
    return run_count == 0;
}

#endif
