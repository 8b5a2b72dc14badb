/* Rules that exceed a function's capacity are reported before a program runs. */
#include "agent/policy/policy.h"
#include "agent/policy/value_capacity.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

enum { MANAGED = 8, NATIVE = 16, ARGUMENTS = 8 };

static void note(void *context, const char *text)
{
    char *said = context;
    const size_t used = strlen(said);
    snprintf(said + used, 4096 - used, "%s\n", text);
}

/* Writes a policy of `count` rules about `function`. All rules but the last are about arguments:
 * first each argument as int, then as uint, then as hex. The last rule is about the result. */
static void write_rules(const char *function, int count, char *text, size_t size)
{
    static const char *const kinds[] = {"int", "uint", "hex"};
    size_t used = (size_t)snprintf(text, size, "{\"policy\": 1, \"values\": [");
    for (int i = 0; i + 1 < count; i++) {
        used += (size_t)snprintf(
            text + used, size - used,
            "{\"name\": \"a%d\", \"function\": \"%s\", \"argument\": %d, \"as\": \"%s\"},", i,
            function, i % ARGUMENTS + 1, kinds[i / ARGUMENTS]);
    }
    snprintf(text + used, size - used,
             "{\"name\": \"r\", \"function\": \"%s\", \"result\": true, \"as\": \"int\"}]}",
             function);
}

/* Writes the messages about the rules of write_rules to `said`. */
static void say(const char *function, int count, char said[4096])
{
    char text[8192];
    sj_policy policy;
    sj_error error = {0};
    write_rules(function, count, text, sizeof(text));
    if (sj_policy_parse(text, strlen(text), "t", &policy, &error) != SJ_OK) {
        fail_msg("%s", error.text);
    }
    said[0] = '\0';
    sj_value_capacity_each_crowded(policy.selection.values, MANAGED, said, note);
    sj_policy_free(&policy);
}

static void the_ninth_value_of_a_method_is_refused(void **state)
{
    char said[4096];
    (void)state;
    say("Npc:Hit", MANAGED, said);
    assert_string_equal(said, "");
    say("Npc:Hit", MANAGED + 1, said);
    assert_string_equal(said, "rule 'r' will not record the result of Npc:Hit: at most 8 values of "
                              "a function are recorded,"
                              " and other rules come first; leave some values out\n");
}

static void missing_parameters_do_not_count_as_values(void **state)
{
    char said[4096];
    (void)state;
    say("Npc:Hit(int,string)", MANAGED + 1, said);
    assert_string_equal(said, "");
    say("app::run", MANAGED + 1, said); /* C++: a native function */
    assert_string_equal(said, "");
}

static void the_seventeenth_value_of_a_native_function_is_refused(void **state)
{
    char text[8192];
    char said[4096];
    sj_policy policy;
    sj_error error = {0};
    (void)state;
    say("work", NATIVE, said);
    assert_string_equal(said, "");
    write_rules("work", NATIVE + 1, text, sizeof(text));
    assert_int_not_equal(sj_policy_parse(text, strlen(text), "t", &policy, &error), SJ_OK);
    assert_non_null(strstr(error.text, "at most 16 values of a function can be recorded"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ninth_value_of_a_method_is_refused),
        cmocka_unit_test(missing_parameters_do_not_count_as_values),
        cmocka_unit_test(the_seventeenth_value_of_a_native_function_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
