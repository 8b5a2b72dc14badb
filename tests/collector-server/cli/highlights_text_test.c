/* The lines about functions: ~ precedes self times that are estimates. */
#include "collector-server/cli/highlights_text.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

static void only_estimated_times_are_marked(void **state)
{
    static const sj_session_highlights highlights = {
        .functions = {{.name = "exact", .self_ns = 12345678, .calls = 1},
                      {.name = "estimate", .self_ns = 850000, .calls = 2, .is_estimate = true},
                      {.name = "exact_too", .self_ns = 430000, .calls = 3},
                      {.name = "estimate_too", .self_ns = 7000, .calls = 4, .is_estimate = true}},
        .function_count = 4,
        .self_ns = 13632678};
    static const char *const expected[] = {" 12.3 ms self", " ~850 us self", " 430 us self",
                                           " ~7.00 us self"};
    char *text = NULL;
    size_t bytes = 0;
    (void)state;
    FILE *file = open_memstream(&text, &bytes);
    assert_non_null(file);
    sj_highlights_print(file, &highlights, false, "run.db", 12);
    assert_int_equal(fclose(file), 0);
    const char *at = text;
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        at = strstr(at, expected[i]);
        if (at == NULL) {
            fail_msg("no '%s' in its place: %s", expected[i], text);
        }
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_estimated_times_are_marked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
