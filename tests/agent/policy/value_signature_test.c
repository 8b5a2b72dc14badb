/* Signatures in source order: which register holds each value, by both calling conventions, and the
 * sentence for each mistake. */
#include "agent/policy/value_signature.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* parse writes "KIND@PLACE=SOURCE ..." of a signature, or the error's text. */
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

static void test_structures_in_memory_count(void **state)
{
    char found[SJ_ERROR_TEXT_BYTES];
    (void)state;
    check("(n:int) -> struct", "1@2=1", "1@1=1");
    check("(x:double, n:int) -> struct", "10@1=1 1@2=2", "10@1=1 1@1=2");
    check("(s:struct, n:int)", "1@1=2", "1@2=2");
    parse("(n:int) -> struct", SJ_CONVENTION_SYSTEM_V, true, found, sizeof(found));
    assert_string_equal(found, "1@1=1");
}

static void test_values_on_the_stack_are_refused(void **state)
{
    static const char seventh[] = "argument 7 is passed on the stack and cannot be recorded: name "
                                  "it \"_\"";
    (void)state;
    check("(_:int,_:int,_:int,_:int,_:int,_:int,g:int)", seventh, "1@7=7");
    check("(_:int,_:int,_:int,_:int,_:int,f:int) -> struct",
          "argument 6 is passed on the stack and cannot be recorded: name it \"_\"", "1@6=6");
    check_both("(_:int,_:int,_:int,_:int,_:int,_:int,_:int,x:double)", "10@1=8");
    check_both("(_:int,_:int,_:int,_:int,_:int,_:int,_:int,_:int,x:double)",
               "argument 9 cannot be recorded, only the first 8 can: name it \"_\"");
}

static void test_mistakes_are_sentences(void **state)
{
    static const char types[] =
        " is not a type: int, uint, long, ulong, char, bool, hex, pointer, float, double, str or "
        "struct is needed";
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
        cmocka_unit_test(test_structures_in_memory_count),
        cmocka_unit_test(test_values_on_the_stack_are_refused),
        cmocka_unit_test(test_mistakes_are_sentences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
