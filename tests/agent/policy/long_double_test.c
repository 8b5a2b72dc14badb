/* Tests long doubles as texts: those of the x87, and binary128 on a machine with another long
 * double. The expected texts are printf's on a machine that has the format. */
#include "agent/policy/long_double.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A number as bytes, the highest byte first, and as a text. */
typedef struct known_number {
    const char *bytes;
    const char *text;
} known_number;

static void read_bytes(const char *digits, size_t count, char *bytes)
{
    assert_int_equal(strlen(digits), 2 * count);
    for (size_t i = 0; i < count; i++) {
        const char byte[3] = {digits[2 * i], digits[2 * i + 1], '\0'};
        bytes[count - 1 - i] = (char)strtoul(byte, NULL, 16);
    }
}

static void check_binary128(const known_number *known, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char bytes[16];
        char text[SJ_LONG_DOUBLE_TEXT_BYTES];
        read_bytes(known[i].bytes, sizeof(bytes), bytes);
        sj_long_double_write_binary128(bytes, text);
        assert_string_equal(text, known[i].text);
    }
}

static void binary128_is_rounded_to_36_digits(void **state)
{
    static const known_number known[] = {
        {"00000000000000000000000000000000", "0"},
        {"80000000000000000000000000000000", "-0"},
        {"3fff0000000000000000000000000000", "1"},
        {"bfff0000000000000000000000000000", "-1"},
        {"3ffe0000000000000000000000000000", "0.5"},
        {"400fe240c00000000000000000000000", "123456.75"},
        {"3ffb999999999999999999999999999a", "0.100000000000000000000000000000000005"},
        {"3ff1a36e2eb1c432ca57a786c226809d", "9.99999999999999999999999999999999966e-05"},
        {"40733426172c74d822b878fe80000000", "100000000000000000000000000000000000"},
        {"4076812f9cf7920e2b66973e20000000", "1e+36"},
        {"414b249ad2594c37ceb0b2784c4ce0bf", "9.99999999999999999999999999999999963e+99"},
        {"7ffeffffffffffffffffffffffffffff", "1.18973149535723176508575932662800702e+4932"},
        {"00010000000000000000000000000000", "3.3621031431120935062626778173217526e-4932"},
        {"00000000000000000000000000000001", "6.47517511943802511092443895822764655e-4966"},
        {"7fff0000000000000000000000000000", "inf"},
        {"ffff0000000000000000000000000000", "-inf"},
        {"7fff8000000000000000000000000000", "nan"}};
    (void)state;
    check_binary128(known, sizeof(known) / sizeof(known[0]));
}

/* After the digits that are written, the first three numbers have one more digit: a 5. */
static void ties_go_to_the_even_digit(void **state)
{
    static const known_number known[] = {
        {"4023cbe991a140000008000000000000", "123456789012.000000029802322387695312"},
        {"4023cbe991a140000018000000000000", "123456789012.000000089406967163085938"},
        {"4023cbe991a140000028000000000000", "123456789012.000000149011611938476562"},
        {"4023cbe991a14000000c000000000000", "123456789012.000000044703483581542969"}};
    (void)state;
    check_binary128(known, sizeof(known) / sizeof(known[0]));
}

static void x87_has_21_digits(void **state)
{
    static const known_number known[] = {
        {"00000000000000000000", "0"},          {"80000000000000000000", "-0"},
        {"3ffe8000000000000000", "0.5"},        {"3ffbcccccccccccccccd", "0.100000000000000000001"},
        {"c00ff120600000000000", "-123456.75"}, {"7fff8000000000000000", "inf"},
        {"7fffc000000000000000", "nan"}};
    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        char bytes[10];
        char text[SJ_LONG_DOUBLE_TEXT_BYTES];
        read_bytes(known[i].bytes, sizeof(bytes), bytes);
        sj_long_double_write_x87(bytes, text);
        assert_string_equal(text, known[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(binary128_is_rounded_to_36_digits),
        cmocka_unit_test(ties_go_to_the_even_digit),
        cmocka_unit_test(x87_has_21_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
