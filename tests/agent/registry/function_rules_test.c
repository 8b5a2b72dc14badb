#include "agent/registry/function_rules.h"

#include "tests/support/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

static sj_policy parse(const char *values)
{
    char text[1024];
    sj_policy policy;
    sj_error error = {0};
    snprintf(text, sizeof(text), "{\"policy\": 1, \"values\": [%s]}", values);
    if (sj_policy_parse(text, strlen(text), "test", &policy, &error) != SJ_OK) {
        fail_msg("%s", error.text);
    }
    return policy;
}

static void refuse_none(void *context, const char *rule, const char *why)
{
    (void)context;
    fail_msg("%s: %s", rule, why);
}

/* The list of value rules holds the rules of all policies. */
static void only_patterns_of_the_present_policy_are_listed(void **state)
{
    char text[256];
    sj_function_rules *rules;
    (void)state;
    sj_policy running = parse("{\"function\": \"old\", \"cpu\": true}, "
                              "{\"function\": \"both\", \"cpu\": true}");
    sj_policy wanted = parse("{\"function\": \"new\", \"signature\": \"(a:int, b:int) -> int\"}, "
                             "{\"function\": \"both\", \"cpu\": true}");
    sj_value_rules *values = running.selection.values;
    assert_int_equal(sj_value_rules_add_missing(values, wanted.selection.values, NULL, refuse_none),
                     SJ_OK);
    assert_int_equal(values->count, 5);
    assert_int_equal(sj_function_rules_new(&running, &rules), SJ_OK);
    sj_function_rules_unmatched(rules, text, sizeof(text));
    assert_string_equal(text, "[\"both\", \"new\"]");
    sj_function_rules_name(rules, 1, "both");
    assert_int_equal(sj_value_rules_add_missing(values, NULL, NULL, refuse_none), SJ_OK);
    sj_function_rules_unmatched(rules, text, sizeof(text));
    assert_string_equal(text, "[]");
    sj_function_rules_free(rules);
    sj_policy_free(&running);
    sj_policy_free(&wanted);
}

#define CHANGE "\"function\": \"m\", \"as\": \"int\", \"when\": {\"op\": \"==\", \"value\": 3}, "

static uint32_t quiet_of(const char *values)
{
    char folder[] = "/tmp/sojourn-rules.XXXXXX";
    char path[sizeof(folder) + sizeof(SJ_CHANGES_NAME)];
    sj_changes_table *table;
    sj_function_rules *rules;
    sj_error error = {0};
    sj_policy policy = parse(values);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/" SJ_CHANGES_NAME, folder);
    assert_int_equal(
        sj_changes_table_new(folder, policy.selection.values, "program", 1.0, &table, &error),
        SJ_OK);
    assert_int_equal(sj_function_rules_new(&policy, &rules), SJ_OK);
    sj_function_rules_set_changes(rules, table);
    sj_function_rules_name_method(rules, 7, "m", SJ_LINK_LANGUAGE_MONO);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const sj_changes *shared = mmap(NULL, sizeof(*shared), PROT_READ, MAP_SHARED, file, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    const sj_changed_function *entry = &shared->functions[sj_changes_place(7)];
    assert_int_equal(atomic_load(&entry->function), 7);
    const uint32_t is_quiet = atomic_load(&entry->is_quiet);
    munmap((void *)(uintptr_t)shared, sizeof(*shared));
    close(file);
    sj_function_rules_free(rules);
    sj_changes_table_free(table);
    sj_policy_free(&policy);
    unlink(path);
    rmdir(folder);
    return is_quiet;
}

/* A rule that cannot change calls of Mono methods still records their values. */
static void rules_that_cannot_change_calls_keep_their_values(void **state)
{
    (void)state;
    assert_int_equal(quiet_of("{\"argument\": 1, " CHANGE "\"change\": {\"return\": 1}}"), 1);
    assert_int_equal(quiet_of("{\"argument\": 1, " CHANGE "\"change\": {\"return\": 1}}, "
                              "{\"argument\": 2, " CHANGE
                              "\"change\": {\"return\": 1, \"errno\": 5}}"),
                     0);
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
        cmocka_unit_test(only_patterns_of_the_present_policy_are_listed),
        cmocka_unit_test(rules_that_cannot_change_calls_keep_their_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
