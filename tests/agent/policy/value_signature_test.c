/* Tests signatures in source order: the register of each value by both calling conventions, and the
 * message for each mistake. */
#include "agent/policy/value_signature.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Writes "KIND@PLACE=SOURCE ..." of a signature, or the error message. */
static void parse(const char *text, sj_calling_convention convention, bool is_method, char *to,
                  size_t capacity)
{
    sj_signature signature;
    sj_error error = {0};
    size_t used = 0;
    to[0] = '\0';
    if (sj_signature_parse(text, convention, is_method, &signature, &error) != SJ_OK) {
        assert_true(strlen(error.text) < capacity);
        memcpy(to, error.text, strlen(error.text) + 1);
        return;
    }
    for (size_t i = 0; i < signature.count; i++) {
        const sj_signature_value *value = &signature.values[i];
        assert_int_equal(sj_value_kind_of(value->place), sj_value_kind_of(value->source));
        assert_true(sj_value_is_sound(value->place) && sj_value_is_sound(value->source));
        used += (size_t)snprintf(to + used, capacity - used, "%s%u@%u=%u", i == 0 ? "" : " ",
                                 sj_value_kind_of(value->place), sj_value_position(value->place),
                                 sj_value_position(value->source));
    }
}

static void check(const char *text, const char *system_v, const char *aapcs64)
{
    char found[SJ_ERROR_TEXT_BYTES];
    parse(text, SJ_CONVENTION_SYSTEM_V, false, found, sizeof(found));
    assert_string_equal(found, system_v);
    parse(text, SJ_CONVENTION_AAPCS64, false, found, sizeof(found));
    assert_string_equal(found, aapcs64);
}

static void check_both(const char *text, const char *expected)
{
    check(text, expected, expected);
}

static void test_registers_are_counted_by_class(void **state)
{
    (void)state;
    check_both("(path:str, flags:hex, mode:int) -> int", "11@1=1 7@2=2 1@3=3 1@0=0");
    check_both("(char_pointer:str,n:int,x:double)->double", "11@1=1 1@2=2 10@1=3 10@0=0");
    check_both("( double , int , float , long )", "10@1=1 1@1=2 9@2=3 3@2=4");
    check_both("(_:double, x:float, _:pointer, n:uint)", "9@2=2 2@2=4");
    check_both("() -> pointer", "8@0=0");
    check_both("(format:string, ...) -> int", "11@1=1 1@0=0");
    check_both("(a:bool, ...) -> void", "6@1=1");
}

static void test_results_in_memory_use_an_argument_register(void **state)
{
    char found[SJ_ERROR_TEXT_BYTES];
    (void)state;
    check("(n:int) -> struct", "1@2=1", "1@1=1");
    check("(x:double, n:int) -> struct", "10@1=1 1@2=2", "10@1=1 1@1=2");
    check("(s:struct, n:int)", "1@1=2", "1@2=2");
    parse("(n:int) -> struct", SJ_CONVENTION_SYSTEM_V, true, found, sizeof(found));
    assert_string_equal(found, "1@1=1");
}

static void test_stack_arguments_have_their_places(void **state)
{
    static const char too_far[] = "argument %d is passed on the stack where it cannot be recorded: "
                                  "name it \"_\"";
    char expected[128];
    char found[SJ_ERROR_TEXT_BYTES];
    (void)state;
    check("(_:int,_:int,_:int,_:int,_:int,_:int,g:int,_:int,i:int)", "1@9=7 1@11=9", "1@7=7 1@9=9");
    check("(_:int,_:int,_:int,_:int,_:int,f:int,g:double) -> struct", "1@9=6 10@1=7",
          "1@6=6 10@1=7");
    check_both("(_:int,_:int,_:int,_:int,_:int,_:int,_:int,_:int,x:double)", "10@1=9");
    snprintf(expected, sizeof(expected), too_far, 8);
    check("(_:int,_:int,_:int,_:int,_:int,_:int,_:struct,h:int)", expected, "1@8=8");
    snprintf(expected, sizeof(expected), too_far, 14);
    check("(_:int,_:int,_:int,_:int,_:int,_:int,_:int,_:int,_:int,_:int,_:int,_:int,_:int,n:int)",
          expected, "1@14=14");
    snprintf(expected, sizeof(expected), too_far, 7);
    parse("(_:int,_:int,_:int,_:int,_:int,_:int,g:int)", SJ_CONVENTION_SYSTEM_V, true, found,
          sizeof(found));
    assert_string_equal(found, expected);
    check_both("(_:int,_:int,_:int,_:int,_:int,_:int,_:double,_:double,_:double,_:double,_:double,"
               "_:double,_:double,_:double,_:int,x:int)",
               "argument 16 cannot be recorded, only the first 15 can: name it \"_\"");
}

/* Writes "LIMIT/KIND@PLACE" of each value to `to`. KIND and PLACE are those of the value's
 * length. */
static void size_of(const char *text, char *to, size_t capacity)
{
    sj_signature signature;
    sj_error error = {0};
    size_t used = 0;
    if (sj_signature_parse(text, SJ_CONVENTION_SYSTEM_V, false, &signature, &error) != SJ_OK) {
        snprintf(to, capacity, "%s", error.text);
        return;
    }
    for (size_t i = 0; i < signature.count; i++) {
        const sj_signature_value *value = &signature.values[i];
        used += (size_t)snprintf(to + used, capacity - used, "%s%u/%u@%u", i == 0 ? "" : " ",
                                 value->limit, sj_value_kind_of(value->length),
                                 sj_value_position(value->length));
    }
}

static void test_texts_have_a_limit_and_a_length(void **state)
{
    static const char *const sizes[][2] = {
        {"(a:str)", "0/0@0"},
        {"(a:str[64], b:str[65], c:str[128]) -> str[4096]", "0/0@0 6/0@0 6/0@0 11/0@0"},
        {"(fd:int, data:bytes[count, 1000], count:ulong)", "0/0@0 9/4@3 0/0@0"},
        {"(_:int, data:bytes[n], n:int)", "0/1@3 0/0@0"},
        {"(n:uint, x:double, s:str[n])", "0/0@0 0/0@0 0/2@1"},
        {"(a:bytes)", "\"bytes\" needs the parameter that has their number: bytes[NAME]"},
        {"(a:bytes[b])", "\"b\" is not a parameter that can be a length"},
        {"(a:bytes[b], b:double)", "\"b\" is not a parameter that can be a length"},
        {"(a:str[4097])", "1 to 4096 bytes can be recorded, not \"4097])\""},
        {"(a:str[64)", "\"]\" is needed before \")\""},
        {"(a:int) -> bytes[a]", "the length of a result is not known at the exit"}};
    char found[SJ_ERROR_TEXT_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_of(sizes[i][0], found, sizeof(found));
        assert_string_equal(found, sizes[i][1]);
    }
}

/* A filled buffer has its place at the exit, at the address that its argument held. */
static void test_buffers_are_as_long_as_the_result(void **state)
{
    sj_signature signature;
    sj_error error = {0};
    char found[SJ_ERROR_TEXT_BYTES];
    (void)state;
    assert_int_equal(sj_signature_parse("(fd:int, to:bytes[result,256], n:ulong) -> long",
                                        SJ_CONVENTION_SYSTEM_V, false, &signature, &error),
                     SJ_OK);
    const sj_signature_value *value = &signature.values[1];
    assert_int_equal(value->place, sj_value_descriptor(SJ_VALUE_RESULT, SJ_VALUE_STRING));
    assert_int_equal(value->source, sj_value_descriptor(2, SJ_VALUE_STRING));
    assert_int_equal(value->filled, SJ_PLACE_FILLED);
    assert_int_equal(value->filled_place, sj_value_descriptor(2, SJ_VALUE_STRING));
    assert_int_equal(value->length, 0);
    assert_true(sj_place_is_limit(value->limit));
    assert_int_equal(sj_signature_parse("(to:str[result]) -> int", SJ_CONVENTION_AAPCS64, false,
                                        &signature, &error),
                     SJ_OK);
    assert_int_equal(signature.values[0].filled, SJ_PLACE_FILLED_INT);
    size_of("(result:int, to:bytes[result]) -> long", found, sizeof(found));
    assert_string_equal(found, "0/0@0 0/1@1 0/0@0");
    check_both("(to:bytes[result]) -> float",
               "\"result\" is a length where the result is int, uint, long or ulong");
    check_both("(a:bytes[result], b:bytes[result]) -> int",
               "one buffer of a function can have its result as length");
}

static void test_mistakes_in_signatures_are_explained(void **state)
{
    static const char types[] =
        " is not a type: int, uint, long, ulong, char, bool, hex, pointer, float, double, str, "
        "bytes or struct is needed";
    static const char *const bad[][2] = {
        {"(a:ints)", "\"ints\""}, {"(a:void)", "\"void\""}, {"(a:)", "\"\""},       {"(,)", "\"\""},
        {"(a:int,)", "\"\""},     {"(int) -> ", "\"\""},    {"(int) -> x", "\"x\""}};
    char expected[256];
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(expected, sizeof(expected), "%s%s", bad[i][1], types);
        check_both(bad[i][0], expected);
    }
    check_both("", "a signature begins with \"(\"");
    check_both("a:int)", "a signature begins with \"(\"");
    check_both("(a:int b:int)", "\",\" or \")\" is needed before \"b:int)\"");
    check_both("(a:int", "\",\" or \")\" is needed before \"\"");
    check_both("(a:int) x", "\"x\" is too much behind the signature");
    check_both("(..., a:int)", "\",\" or \")\" is needed before \", a:int)\"");
    check_both("(_:int) -> struct", "the signature has no value that can be recorded");
    check_both("()", "the signature has no value that can be recorded");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registers_are_counted_by_class),
        cmocka_unit_test(test_results_in_memory_use_an_argument_register),
        cmocka_unit_test(test_stack_arguments_have_their_places),
        cmocka_unit_test(test_texts_have_a_limit_and_a_length),
        cmocka_unit_test(test_buffers_are_as_long_as_the_result),
        cmocka_unit_test(test_mistakes_in_signatures_are_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
