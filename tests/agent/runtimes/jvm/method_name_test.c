#include "agent/runtimes/jvm/method_name.h"

#include "tests/support/check.h"

static sj_slice slice(const char *text)
{
    return (sj_slice){.data = (const uint8_t *)text, .size = strlen(text)};
}

static void expect(const char *class, const char *method, const char *descriptor,
                   const char *expected)
{
    char name[SJ_JAVA_NAME_BYTES];
    const sj_class_file file = {.name = slice(class)};
    const sj_class_method one = {.name = slice(method), .descriptor = slice(descriptor)};
    sj_java_method_name(&file, &one, name);
    assert_string_equal(name, expected);
}

static void test_names_are_those_of_java(void **state)
{
    (void)state;
    expect("com/acme/Main$Inner", "run", "(I[[Ljava/lang/String;JZ)V",
           "com.acme.Main$Inner.run(int,java.lang.String[][],long,boolean)");
    expect("Main", "<init>", "()V", "Main.<init>()");
}

static void test_bytes_that_are_no_text_are_shown_as_numbers(void **state)
{
    (void)state;
    expect("a\xc0\x80z", "\xff\n", "()V", "a\\xc0\\x80z.\\xff\\x0a()");
    expect("\xe6\xbc\xa2", "\xed\xa0\x80", "(B)V", "\xe6\xbc\xa2.\\xed\\xa0\\x80(byte)");
}

static void test_descriptors_without_a_format_are_shown_unchanged(void **state)
{
    (void)state;
    expect("A", "m", "(Ljava/lang/String", "A.m(Ljava/lang/String");
    expect("A", "m", "(Q)V", "A.m(Q)V");
    expect("A", "m", "", "A.m");
    expect("A", "m", "([", "A.m([");
}

static void test_long_names_are_cut(void **state)
{
    static char class[4 * SJ_JAVA_NAME_BYTES];
    char name[SJ_JAVA_NAME_BYTES];
    (void)state;
    memset(class, 'x', sizeof(class) - 1);
    sj_java_class_name(slice(class), name);
    assert_int_equal(strlen(name), SJ_JAVA_NAME_BYTES - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_those_of_java),
        cmocka_unit_test(test_bytes_that_are_no_text_are_shown_as_numbers),
        cmocka_unit_test(test_descriptors_without_a_format_are_shown_unchanged),
        cmocka_unit_test(test_long_names_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
