#include "agent/registry/seen_names.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

static void names_are_listed_once_by_their_file_name(void **state)
{
    sj_seen_names seen;
    char text[256];
    (void)state;
    sj_seen_names_init(&seen);
    sj_seen_names_describe(&seen, "none", text, sizeof(text));
    assert_string_equal(text, "none");
    sj_seen_names_add(&seen, "/usr/lib/libm.so.6");
    sj_seen_names_add(&seen, "worker");
    sj_seen_names_add(&seen, "worker");
    sj_seen_names_add(&seen, "");
    sj_seen_names_describe(&seen, "none", text, sizeof(text));
    assert_string_equal(text, "\"libm.so.6\", \"worker\"");
    sj_seen_names_deinit(&seen);
}

static void names_beyond_the_capacity_are_counted_as_others(void **state)
{
    sj_seen_names seen;
    char name[2 * SJ_SEEN_NAME_BYTES];
    char text[SJ_SEEN_NAMES * SJ_SEEN_NAME_BYTES + 64];
    (void)state;
    sj_seen_names_init(&seen);
    for (int i = 0; i <= SJ_SEEN_NAMES; i++) {
        snprintf(name, sizeof(name), "%d%0100d", i, 0);
        sj_seen_names_add(&seen, name);
        sj_seen_names_add(&seen, name);
    }
    assert_int_equal(seen.count, SJ_SEEN_NAMES);
    assert_int_equal(seen.others, 2);
    sj_seen_names_describe(&seen, "none", text, sizeof(text));
    assert_non_null(strstr(text, " and others"));
    sj_seen_names_describe(&seen, "none", text, 16); /* cut, not overrun */
    assert_int_equal(strlen(text), 15);
    sj_seen_names_deinit(&seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_listed_once_by_their_file_name),
        cmocka_unit_test(names_beyond_the_capacity_are_counted_as_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
