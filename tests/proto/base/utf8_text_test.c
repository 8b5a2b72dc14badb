/* Bytes that are not UTF-8 are escaped. All other bytes stay as they are. */
#include "proto/base/utf8_text.h"
#include "tests/support/check.h"

#include <stdlib.h>

static void expect(const char *text, size_t size, const char *expected)
{
    char out[64] = "";
    char *tight = malloc(size + 1); /* so that ASan sees a read beyond the end */
    assert_non_null(tight);
    memcpy(tight, text, size);
    tight = realloc(tight, size > 0 ? size : 1);
    assert_non_null(tight);
    assert_int_equal(sj_utf8_escape(tight, size, NULL), strlen(expected));
    assert_int_equal(sj_utf8_escape(tight, size, out), strlen(expected));
    assert_memory_equal(out, expected, strlen(expected));
    free(tight);
}

static void text_stays_as_it_is(void **state)
{
    (void)state;
    expect("", 0, "");
    expect("main", 4, "main");
    expect("a\\xff", 5, "a\\xff");
    expect("\x7f\xc2\x80\xdf\xbf", 5, "\x7f\xc2\x80\xdf\xbf");
    expect("\xe0\xa0\x80\xed\x9f\xbf\xef\xbf\xbf", 9, "\xe0\xa0\x80\xed\x9f\xbf\xef\xbf\xbf");
    expect("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 8, "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
}

static void other_bytes_are_escaped(void **state)
{
    (void)state;
    expect("a\xff"
           "b",
           3, "a\\xffb");
    expect("\x80", 1, "\\x80");
    expect("\xc0\xaf", 2, "\\xc0\\xaf");                   /* "/" in two bytes */
    expect("\xe0\x80\xaf", 3, "\\xe0\\x80\\xaf");          /* "/" in three bytes */
    expect("\xed\xa0\x80", 3, "\\xed\\xa0\\x80");          /* half of a surrogate pair */
    expect("\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80"); /* beyond U+10FFFF */
}

static void a_sequence_that_is_cut_is_escaped(void **state)
{
    (void)state;
    expect("\xe2\x82\xac", 2, "\\xe2\\x82");
    expect("\xf0\x90\x80\x80", 3, "\\xf0\\x90\\x80");
    expect("\xc3", 1, "\\xc3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_stays_as_it_is),
        cmocka_unit_test(other_bytes_are_escaped),
        cmocka_unit_test(a_sequence_that_is_cut_is_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
