#include "agent/registry/function_rules.h"

#include "tests/support/check.h"

#include <stdlib.h>

static const char document[] =
    "{\"policy\": 1, \"functions\": {\"include\": [\"net_*\", \"disk_*\"], \"exclude\": "
    "[\"*_lock\"]},"
    " \"modules\": {\"include\": [\"libnet.so*\", \"libnone.so\"]},"
    " \"calls\": {\"one_in\": [{\"function\": \"net_poll\", \"n\": 3},"
    "                        {\"function\": \"never\", \"n\": 2}]},"
    " \"triggers\": [{\"on\": \"slow_call\", \"function\": \"net_send\", \"longer_than\": \"1ms\","
    "               \"do\": [\"mark\"]}]}";

typedef struct fixture {
    sj_policy policy;
    sj_function_rules *rules;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof(*f));
    sj_error error = {0};
    const sj_status status =
        sj_policy_parse(document, sizeof(document) - 1, "test", &f->policy, &error);
    if (status != SJ_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(sj_function_rules_new(&f->policy, &f->rules), SJ_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    sj_function_rules_free(f->rules);
    sj_policy_free(&f->policy);
    free(f);
    return 0;
}

static void a_function_gets_the_rules_that_match_its_name(void **state)
{
    const fixture *f = *state;
    sj_function_rules_name(f->rules, 1, "net_send");
    sj_function_rules_name(f->rules, 2, "net_poll");
    sj_function_rules_name(f->rules, 3, "main");
    assert_int_equal(sj_function_rules_get(f->rules, 1).triggers, 1);
    assert_int_equal(sj_function_rules_get(f->rules, 1).one_in, 0);
    assert_int_equal(sj_function_rules_get(f->rules, 2).triggers, 0);
    assert_int_equal(sj_function_rules_get(f->rules, 2).one_in, 3);
    assert_int_equal(sj_function_rules_get(f->rules, 3).triggers, 0);
    assert_int_equal(sj_function_rules_get(f->rules, 3).one_in, 0);
}

static void one_call_in_n_is_kept_for_each_function(void **state)
{
    const fixture *f = *state;
    for (int round = 0; round < 2; round++) {
        assert_true(sj_function_rules_sample(f->rules, 2, 3));
        assert_false(sj_function_rules_sample(f->rules, 2, 3));
        assert_true(sj_function_rules_sample(f->rules, 4 + (uint32_t)round, 3));
        assert_false(sj_function_rules_sample(f->rules, 2, 3));
    }
}

static void ids_beyond_the_table_follow_no_rules(void **state)
{
    const fixture *f = *state;
    sj_function_rules_name(f->rules, SJ_RULED_FUNCTIONS, "net_poll");
    assert_int_equal(sj_function_rules_get(f->rules, SJ_RULED_FUNCTIONS).one_in, 0);
    assert_true(sj_function_rules_sample(f->rules, SJ_RULED_FUNCTIONS, 3));
    assert_true(sj_function_rules_sample(f->rules, SJ_RULED_FUNCTIONS, 3));
    sj_function_rules_count(f->rules, SJ_FILTERED_DEPTH, SJ_RULED_FUNCTIONS, 1);
}

static void patterns_without_a_match_are_listed(void **state)
{
    const fixture *f = *state;
    char text[512];
    sj_function_rules_unmatched(f->rules, text, sizeof(text));
    assert_string_equal(text, "[\"libnet.so*\", \"libnone.so\", \"net_*\", \"disk_*\", \"*_lock\", "
                              "\"net_poll\", \"never\", \"net_send\"]");
    sj_function_rules_module(f->rules, "/opt/app/libnet.so.1");
    sj_function_rules_name(f->rules, 1, "net_send");
    sj_function_rules_name(f->rules, 2, "net_poll");
    sj_function_rules_name(f->rules, 3, "net_lock");
    sj_function_rules_unmatched(f->rules, text, sizeof(text));
    assert_string_equal(text, "[\"libnone.so\", \"disk_*\", \"never\"]");
}

static void a_list_that_is_too_long_is_cut_between_patterns(void **state)
{
    const fixture *f = *state;
    char text[24];
    sj_function_rules_unmatched(f->rules, text, sizeof(text));
    assert_string_equal(text, "[\"libnet.so*\"]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_function_gets_the_rules_that_match_its_name, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(one_call_in_n_is_kept_for_each_function, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ids_beyond_the_table_follow_no_rules, set_up, tear_down),
        cmocka_unit_test_setup_teardown(patterns_without_a_match_are_listed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_list_that_is_too_long_is_cut_between_patterns, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
