/* Text from a traced program or a device reaches a terminal as characters only. */
#include "collector-server/cli/function_name.h"
#include "collector-server/cli/text_width.h"
#include "tests/support/check.h"

#include <stdlib.h>

/* Checks the text as cleaned for a terminal, and as the name of a function. Both show the same. */
static void check_shown(const char *text, size_t bytes, const char *shown)
{
    char *written = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&written, &size);
    assert_non_null(file);
    sj_text_write(file, text, bytes);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(written, shown);
    free(written);
    if (bytes == strlen(text)) {
        char clean[64];
        char name[SJ_FUNCTION_NAME_BYTES];
        snprintf(clean, sizeof(clean), "%s", text);
        sj_text_clean(clean);
        assert_string_equal(clean, shown);
        assert_string_equal(sj_function_name_fit(text, 0, name), shown);
        assert_int_equal(sj_text_width(text), sj_text_width(shown));
    }
}

static void check_text(const char *text, const char *shown)
{
    check_shown(text, strlen(text), shown);
}

static void no_control_character_is_shown(void **state)
{
    (void)state;
    check_text("plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 \xc2\xa0 \xef\xbf\xbd",
               "plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 \xc2\xa0 \xef\xbf\xbd");
    check_text("\x1b[31mred\r\n\t\x7f", "?[31mred????");
    check_text("\xc2\x80\xc2\x9b"
               "31mred\xc2\x9f",
               "??31mred?"); /* CSI as one character */
}

static void bytes_that_are_not_utf8_are_not_shown(void **state)
{
    (void)state;
    check_text("\x9b"
               "31mred\x80\xff",
               "?31mred??");                                 /* CSI as one byte */
    check_text("\xc3", "?");                                 /* a truncated character */
    check_text("\xe2\x82.", "??.");                          /* cut, and more text */
    check_text("\xe0\x82\x9b \xf0\x80\x82\x9b", "??? ????"); /* CSI in overlong encodings */
    check_text("\xed\xa0\x80 \xf4\x90\x80\x80", "??? ????"); /* a surrogate; above the range */
    check_shown("a\xc3\xa4", 2, "a?");
    check_shown("abc", 2, "ab");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_control_character_is_shown),
        cmocka_unit_test(bytes_that_are_not_utf8_are_not_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
