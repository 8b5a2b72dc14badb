/* Tests rules of later policies: earlier rules keep their indexes, each rule has its own index, and
 * a rule that cannot start late is reported. */
#include "agent/policy/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OPEN "\"function\": \"f\", \"argument\": 1, \"as\": \"int\""
#define PATH "\"function\": \"f\", \"argument\": 1, \"as\": \"string\""
#define ALL_PATHS "\"function\": \"f*\", \"argument\": 1, \"as\": \"string\""
#define FIXED "an earlier rule has said how much of this text is recorded: record again for more\n"
#define RETURNS "\"change\": {\"return\": -1}"

static sj_value_rules *rules_of(const char *values)
{
    char text[2048];
    sj_policy policy;
    sj_error error = {0};
    snprintf(text, sizeof(text),
             "{\"policy\": 1, \"modules\": {\"library_calls\": true}, \"values\": [%s]}", values);
    if (sj_policy_parse(text, strlen(text), "t", &policy, &error) != SJ_OK) {
        fail_msg("%s", error.text);
    }
    sj_value_rules *rules = sj_value_rules_share(policy.selection.values);
    sj_policy_free(&policy);
    return rules;
}

static void note(void *context, const char *rule, const char *why)
{
    char *said = context;
    const size_t used = strlen(said);
    snprintf(said + used, 1024 - used, "%s: %s\n", rule, why);
}

static void add(sj_value_rules *rules, const char *values, char said[1024])
{
    sj_value_rules *wanted = rules_of(values);
    said[0] = '\0';
    assert_int_equal(sj_value_rules_add_missing(rules, wanted, said, note), SJ_OK);
    sj_value_rules_free(wanted);
}

static void test_a_rule_keeps_its_index_in_the_next_policy(void **state)
{
    char said[1024];
    (void)state;
    sj_value_rules *rules = rules_of("{\"name\": \"a\", " OPEN ", " RETURNS "}");
    /* Another action has the same index. Another name, value or function has another index. */
    add(rules, "{\"name\": \"a\", " OPEN ", \"change\": {\"set\": 3}}", said);
    assert_int_equal(rules->count, 1);
    assert_false(rules->items[0].came_late);
    add(rules, "{\"name\": \"b\", " OPEN ", " RETURNS "}, {\"name\": \"a\", " OPEN ", " RETURNS "}",
        said);
    assert_int_equal(rules->count, 2);
    assert_string_equal(rules->names[1], "b");
    assert_true(rules->items[1].came_late && rules->items[1].is_fresh);
    assert_true(sj_value_rules_match(rules, "f").words[0] == 0x3);
    /* Two equal rules need two indexes. A rule without a change is a rule, too. */
    add(rules,
        "{\"name\": \"b\", " OPEN ", " RETURNS "}, {\"name\": \"b\", " OPEN ", " RETURNS "}, {" OPEN
        "}",
        said);
    assert_int_equal(rules->count, 4);
    add(rules, "{" OPEN "}", said);
    assert_int_equal(rules->count, 4);
    assert_string_equal(said, "");
    assert_true(sj_value_rules_have_records(rules, rules));
    assert_false(sj_value_rules_have_records(NULL, rules));
    sj_value_rules_settle(rules);
    assert_false(rules->items[1].is_fresh);
    sj_value_rules_free(rules);
}

static void test_rules_that_cannot_begin_late_are_named(void **state)
{
    char said[1024];
    (void)state;
    sj_value_rules *rules = rules_of("{" OPEN "}");
    add(rules,
        "{\"name\": \"typed\", \"function\": \"g\"}, {\"name\": \"bytes\", \"function\": \"g\", "
        "\"memory\": true}, {\"name\": \"call\", \"function\": \"!g\", \"argument\": 1, \"as\": "
        "\"int\"}, "
        "{\"name\": \"order\", \"function\": \"f\", \"signature\": \"(n:int)\"}, "
        "{\"name\": \"fine\", \"function\": \"g\", \"cpu\": true}",
        said);
    /* The message says which rule, why, and what to do. */
    assert_string_equal(
        said,
        "order: signatures and numbers of arguments count differently: write it as this function's "
        "others\n");
    assert_int_equal(rules->count, 5);
    assert_true(rules->items[1].is_typed && rules->items[2].is_memory);
    sj_value_rules_free(rules);
}

/* A list has no table of types until a rule asks for it. */
static void test_types_are_known_once_a_later_rule_asks_for_them(void **state)
{
    char said[1024];
    (void)state;
    sj_value_rules *rules = rules_of("{" OPEN "}");
    sj_value_rules_set_typed(rules, 7, calloc(1, sizeof(sj_typed_function)));
    assert_null(sj_value_rules_typed(rules, 7));
    add(rules, "{" OPEN "}, {\"function\": \"g\"}", said);
    assert_string_equal(said, "");
    sj_typed_function *known = calloc(1, sizeof(*known));
    sj_value_rules_set_typed(rules, 7, known);
    sj_value_rules_set_typed(rules, 7, calloc(1, sizeof(*known)));
    assert_ptr_equal(sj_value_rules_typed(rules, 7), known);
    /* A second policy with such rules keeps the known types. */
    add(rules, "{\"function\": \"g\"}, {\"function\": \"h*\"}", said);
    assert_string_equal(said, "");
    assert_ptr_equal(sj_value_rules_typed(rules, 7), known);
    assert_int_equal(rules->count, 3);
    sj_value_rules_free(rules);
}

/* A number of words may equal the number of a place, or of the prefix of a place. */
static void test_a_number_of_words_is_not_taken_for_a_place(void **state)
{
    const uint8_t text = sj_value_descriptor(1, SJ_VALUE_STRING);
    (void)state;
    for (uint8_t words = 1; words <= 16; words++) {
        const uint8_t places[SJ_PLACES_PER_FUNCTION] = {SJ_PLACE_WORDS, words, text};
        assert_true(sj_value_places_have(places, text));
        assert_false(sj_value_places_have(places, SJ_PLACE_CPU_ENTRY));
        assert_false(sj_value_places_have(places, SJ_PLACE_MEMORY_ENTRY));
    }
    const uint8_t both[SJ_PLACES_PER_FUNCTION] = {SJ_PLACE_WORDS, 3, text, SJ_PLACE_MEMORY_ENTRY};
    assert_true(sj_value_places_have(both, SJ_PLACE_MEMORY_ENTRY));
}

static void test_a_later_rule_cannot_lengthen_a_text(void **state)
{
    char said[1024];
    (void)state;
    sj_value_rules *rules =
        rules_of("{" PATH "}, {\"function\": \"h\", \"signature\": \"(to:str[256], n:int)\"}");
    add(rules, "{\"name\": \"long\", " PATH ", \"text_bytes\": 512}", said);
    assert_string_equal(said, "long: " FIXED);
    add(rules,
        "{\"name\": \"sized\", \"function\": \"h\", \"signature\": \"(to:bytes[n], n:int)\"}",
        said);
    assert_string_equal(said, "sized: " FIXED);
    const size_t count = rules->count;
    add(rules, "{\"name\": \"short\", \"function\": \"h\", \"signature\": \"(to:str[128])\"}",
        said);
    assert_string_equal(said, "");
    /* No probe exists for either rule. */
    add(rules,
        "{\"name\": \"a\", \"function\": \"g\", \"argument\": 1, \"as\": \"string\"}, {\"name\": "
        "\"b\", \"function\": \"g\", \"argument\": 1, \"as\": \"string\", \"text_bytes\": 512}",
        said);
    assert_string_equal(said, "");
    assert_int_equal(rules->count, count + 3);
    sj_value_rules_free(rules);
}

/* Lists the places of the first rule, then those of the late rule, as for a running program.
 * Returns how often the late rule did not fit. */
static uint32_t crowded_of_late(const char *first, const char *late)
{
    char said[1024];
    uint8_t places[SJ_PLACES_PER_FUNCTION];
    sj_rule_set set = {0};
    sj_value_rules *rules = rules_of(first);
    sj_rule_set_add(&set, 0);
    sj_value_rules_list(rules, &set, places, 0, SJ_PLACES_PER_FUNCTION);
    add(rules, late, said);
    assert_string_equal(said, "");
    assert_int_equal(rules->count, 2);
    const uint8_t *end = memchr(places, 0, sizeof(places));
    sj_rule_set_remove(&set, 0);
    sj_rule_set_add(&set, 1);
    sj_value_rules_list(rules, &set, places, (size_t)(end - places), SJ_PLACES_PER_FUNCTION);
    sj_value_rules_count_crowded(rules, &set, places);
    const uint32_t crowded = atomic_load(&rules->crowded[1]);
    sj_value_rules_free(rules);
    return crowded;
}

static void test_longer_texts_are_counted_where_patterns_overlap(void **state)
{
    (void)state;
    assert_int_equal(crowded_of_late("{" PATH "}", "{" ALL_PATHS ", \"text_bytes\": 512}"), 1);
    assert_int_equal(crowded_of_late("{" PATH "}", "{" ALL_PATHS "}"), 0);
    assert_int_equal(
        crowded_of_late("{" PATH ", \"text_bytes\": 512}", "{" ALL_PATHS ", \"text_bytes\": 256}"),
        0);
    assert_int_equal(
        crowded_of_late("{" PATH ", \"text_bytes\": 256}", "{" ALL_PATHS ", \"text_bytes\": 512}"),
        1);
    assert_int_equal(crowded_of_late("{" OPEN "}", "{" ALL_PATHS ", \"text_bytes\": 512}"), 0);
}

static void test_rules_of_a_refused_policy_match_nothing(void **state)
{
    char said[1024];
    sj_value_rules_past past;
    (void)state;
    sj_value_rules *rules = rules_of("{\"name\": \"a\", " OPEN "}, {\"name\": \"b\", " OPEN "}");
    sj_value_rules *only_a = rules_of("{\"name\": \"a\", " OPEN "}");
    rules->items[1].is_former = true;
    sj_value_rules_remember(rules, &past);
    add(rules,
        "{\"name\": \"b\", " OPEN
        "}, {\"name\": \"c\", \"function\": \"f\", \"argument\": 2, \"as\": "
        "\"int\", \"when\": [{\"caller\": \"g\"}]}",
        said);
    assert_true(sj_value_rules_match(rules, "f").words[0] == 0x7);
    assert_true(sj_value_rules_called_from(rules, "g").words[0] == 0x4);
    sj_value_rules_undo(rules, &past);
    assert_int_equal(rules->count, 3);
    assert_true(sj_value_rules_match(rules, "f").words[0] == 0x3);
    assert_true(sj_value_rules_called_from(rules, "g").words[0] == 0);
    assert_false(rules->items[0].is_former);
    assert_true(rules->items[1].is_former && rules->items[1].row == 1);
    assert_true(rules->items[2].is_former);
    sj_value_rules *both = rules_of("{\"name\": \"a\", " OPEN "}, {\"name\": \"b\", " OPEN "}");
    assert_true(sj_value_rules_have_records(both, rules)); /* nothing was recorded for rule c */
    assert_false(sj_value_rules_have_records(only_a, rules));
    /* A later policy omits rule c, and another one asks for it again. The rule gets its index
     * back. */
    add(rules, "{\"name\": \"b\", " OPEN "}", said);
    assert_true(sj_value_rules_match(rules, "f").words[0] == 0x3);
    sj_value_rules_settle(rules);
    add(rules,
        "{\"name\": \"c\", \"function\": \"f\", \"argument\": 2, \"as\": \"int\", \"when\": "
        "[{\"caller\": \"g\"}]}",
        said);
    assert_int_equal(rules->count, 3);
    assert_true(sj_value_rules_match(rules, "f").words[0] == 0x7);
    assert_true(rules->items[2].is_fresh && !rules->items[2].is_former);
    sj_value_rules_free(both);
    sj_value_rules_free(only_a);
    sj_value_rules_free(rules);
}

static void test_rules_beyond_the_limit_are_refused(void **state)
{
    char said[1024];
    char rule[128];
    (void)state;
    sj_value_rules *rules = rules_of("");
    for (int i = 0; i < SJ_VALUE_RULES; i++) {
        snprintf(rule, sizeof(rule), "{\"name\": \"n%d\", " OPEN ", " RETURNS "}", i);
        add(rules, rule, said);
        assert_string_equal(said, "");
    }
    add(rules, "{\"name\": \"last\", " OPEN ", " RETURNS "}", said);
    assert_string_equal(
        said, "last: the recording has had as many rules as it can have: begin another one\n");
    assert_int_equal(rules->count, SJ_VALUE_RULES);
    sj_value_rules_free(rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_rule_keeps_its_index_in_the_next_policy),
        cmocka_unit_test(test_rules_that_cannot_begin_late_are_named),
        cmocka_unit_test(test_types_are_known_once_a_later_rule_asks_for_them),
        cmocka_unit_test(test_a_number_of_words_is_not_taken_for_a_place),
        cmocka_unit_test(test_a_later_rule_cannot_lengthen_a_text),
        cmocka_unit_test(test_longer_texts_are_counted_where_patterns_overlap),
        cmocka_unit_test(test_rules_of_a_refused_policy_match_nothing),
        cmocka_unit_test(test_rules_beyond_the_limit_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
