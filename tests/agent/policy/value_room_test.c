/* Rules that find no room are named before anything runs. */
#include "agent/policy/policy.h"
#include "agent/policy/value_room.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

enum { MANAGED = 8 };

static void note(void *context, const char *text)
{
    char *said = context;
    const size_t used = strlen(said);
    snprintf(said + used, 4096 - used, "%s\n", text);
}

/* Writes what is said of `count` rules, about the arguments 1 to count - 1 and the result of
 * `function`. */
static void say(const char *function, int count, char said[4096])
{
    char text[8192];
    sj_policy policy;
    sj_error error = {0};
    int used = snprintf(text, sizeof(text), "{\"policy\": 1, \"values\": [");
    for (int i = 1; i < count; i++) {
        used += snprintf(
            text + used, sizeof(text) - (size_t)used,
            "{\"name\": \"a%d\", \"function\": \"%s\", \"argument\": %d, \"as\": \"int\"},", i,
            function, i);
    }
    snprintf(text + used, sizeof(text) - (size_t)used,
             "{\"name\": \"r\", \"function\": \"%s\", \"result\": true, \"as\": \"int\"}]}",
             function);
    if (sj_policy_parse(text, strlen(text), "t", &policy, &error) != SJ_OK) {
        fail_msg("%s", error.text);
    }
    said[0] = '\0';
    sj_value_room_each_crowded(policy.selection.values, MANAGED, said, note);
    sj_policy_free(&policy);
}

static void the_ninth_value_of_a_method_has_no_room(void **state)
{
    char said[4096];
    (void)state;
    say("Npc:Hit", MANAGED, said);
    assert_string_equal(said, "");
    say("Npc:Hit", MANAGED + 1, said);
    assert_string_equal(
        said,
        "rule 'r' will not record the result of Npc:Hit: 8 values of a function are recorded at"
        " most, and those of other rules come first; leave some of them out\n");
}

static void parameters_that_are_not_there_take_no_room(void **state)
{
    char said[4096];
    (void)state;
    say("Npc:Hit(int,string)", MANAGED + 1, said);
    assert_string_equal(said, "");
    say("app::run", MANAGED + 1, said); /* C++: a native function */
    assert_string_equal(said, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ninth_value_of_a_method_has_no_room),
        cmocka_unit_test(parameters_that_are_not_there_take_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
