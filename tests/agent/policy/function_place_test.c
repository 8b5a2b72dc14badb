#include "agent/policy/pattern.h"
#include "tests/support/check.h"

#include <string.h>

static sj_function_place parsed(const char *text)
{
    sj_function_place place;
    assert_int_equal(sj_function_place_parse(text, &place, NULL), SJ_OK);
    return place;
}

static void test_a_place_has_a_module_a_range_and_a_build(void **state)
{
    (void)state;
    sj_function_place place = parsed("libstdc++.so.6+0x1190");
    assert_string_equal(place.module, "libstdc++.so.6");
    assert_true(place.low == 0x1190 && place.high == 0x1190 && place.build_id[0] == '\0');
    place = parsed("a+0x1-0xffffffffffffffff@AbC1");
    assert_true(place.low == 1 && place.high == UINT64_MAX);
    assert_string_equal(place.build_id, "AbC1");
    place = parsed("odd+0x1+0x2");
    assert_string_equal(place.module, "odd+0x1");
}

static void test_malformed_places_are_refused(void **state)
{
    static const char *const texts[] = {"a+0x",      "a+0xg",          "a+0x1g",
                                        "a+0x2-0x1", "a+0x1-",         "a+0x1-2",
                                        "a+0x1@",    "a+0x1@x",        "a+0x1-0x2@1 ",
                                        "a+0x1-0x",  "a+0x1-0x2-0x3@", "a+0x11112222333344445",
                                        "a+0x1-0x*"};
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        sj_pattern pattern;
        sj_error error = {0};
        assert_true(sj_function_place_is(texts[i]));
        assert_int_equal(sj_pattern_make(texts[i], &pattern, &error), SJ_EINVAL);
        assert_non_null(strstr(error.text, "MODULE+0x"));
    }
    assert_false(sj_function_place_is("+0x12"));
    assert_false(sj_function_place_is("operator+"));
}

static bool matches(const char *pattern_text, const char *key)
{
    sj_pattern pattern;
    assert_int_equal(sj_pattern_make(pattern_text, &pattern, NULL), SJ_OK);
    const bool is_match = sj_pattern_matches_symbol(&pattern, key);
    sj_pattern_free(&pattern);
    return is_match;
}

static void test_places_and_names_match_keys(void **state)
{
    static const uint8_t build_id[] = {0xab, 0xcd, 0x01};
    sj_function_keys keys;
    (void)state;
    sj_function_keys_init(&keys, "/usr/bin/two", build_id, sizeof(build_id));
    const char *unnamed = sj_function_key(&keys, "", 0x1190);
    assert_true(matches("two+0x1190", unnamed));
    assert_true(matches("t*+0x1000-0x1190", unnamed));
    assert_true(matches("two+0x1190@ABCD", unnamed));
    assert_false(matches("two+0x1190@abce", unnamed));
    assert_false(matches("two+0x1190@abcd0123", unnamed));
    assert_false(matches("two+0x119", unnamed));
    assert_false(matches("two+0x1191-0x2000", unnamed));
    assert_false(matches("wo+0x1190", unnamed));
    const char *named = sj_function_key(&keys, "_ZN3net4sendEv", 0x20);
    assert_true(matches("net::send", named));
    assert_true(matches("_ZN3net4sendEv", named));
    assert_true(matches("two+0x20", named));
    assert_false(matches("two*", named));
    assert_true(matches("two+0x20", "two+0x20")); /* a pattern matches its own text */
    assert_false(matches("two+0x20", "net_send"));
}

static void test_methods_and_odd_files_have_no_places(void **state)
{
    sj_function_keys keys;
    (void)state;
    sj_function_keys_init(&keys, "/opt/two", NULL, 0);
    assert_string_equal(sj_function_key(&keys, "-[Shop sell:]", 1), "-[Shop sell:]");
    assert_true(matches("two+0x5", sj_function_key(&keys, "f", 5)));
    assert_false(matches("two+0x5@00", sj_function_key(&keys, "f", 5)));
    sj_function_keys_init(&keys, "/opt/lib!so", NULL, 0);
    assert_string_equal(sj_function_key(&keys, "f", 5), "f");
    sj_function_keys_init(&keys, "/opt/Shop:sell", NULL, 0);
    assert_string_equal(sj_function_key(&keys, "f", 5), "f");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_place_has_a_module_a_range_and_a_build),
        cmocka_unit_test(test_malformed_places_are_refused),
        cmocka_unit_test(test_places_and_names_match_keys),
        cmocka_unit_test(test_methods_and_odd_files_have_no_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
