#include "agent/runtimes/objc/encoding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_small_results_are_in_registers(void **state)
{
    static const char *const types[] = {
        "v16@0:8",
        "@16@0:8",
        "r^{Big=[4d][6q]}16@0:8",
        "D16@0:8",
        "jD16@0:8",
        "{Mixed=qd}24@0:8q16",
        "{Pair=ff}16@0:8",
        "{_NSRange=QQ}16@0:8",
        "{Only=D}16@0:8",
        "{Pointers=^{Deep={Deeper=[9[9q]]}}^?}16@0:8",
        "(Either=qd)16@0:8",
        "{Empty=}16@0:8",
        "{Chars=[16c]}16@0:8",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        print_message("%s\n", types[i]);
        assert_int_equal(sj_objc_encoding_result(types[i]), SJ_OBJC_RESULT_REGISTERS);
    }
}

static void test_large_results_are_in_memory(void **state)
{
    static const char *const types[] = {
        "{Big=[4d][6q]}96@0:8{Big=[4d][6q]}16i96",
        "{Three=qqc}16@0:8",
        "{Padded=cqc}16@0:8",
        "{_NSRect={_NSPoint=dd}{_NSSize=dd}}16@0:8",
        "r{Chars=[17c]}16@0:8",
        "{Long=iD}16@0:8",
        "(Wide=q[5i])16@0:8",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        print_message("%s\n", types[i]);
        assert_int_equal(sj_objc_encoding_result(types[i]), SJ_OBJC_RESULT_MEMORY);
    }
}

static void test_unknown_encodings_are_reported_as_such(void **state)
{
    static const char *const types[] = {"",
                                        "!{",
                                        "![32,32q]80@0:8",
                                        "{Bits=b0I3b3I5}16@0:8",
                                        "{Unknown}16@0:8",
                                        "{Cut=q",
                                        "{Cut=^{x",
                                        "[4",
                                        "(Mixed=qD)16@0:8",
                                        "{Vector=![16,16f]}16@0:8",
                                        "{A=[99999999999999999999q]}",
                                        "{A=[1048576[1048576q]]}",
                                        "{A={A={A={A=",
                                        "r",
                                        "{=}}"};
    (void)state;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        const sj_objc_result result = sj_objc_encoding_result(types[i]);
        print_message("%s: %d\n", types[i], (int)result);
        assert_true(result != SJ_OBJC_RESULT_MEMORY);
    }
    assert_int_equal(sj_objc_encoding_result("{Bits=b0I3b3I5}16@0:8"), SJ_OBJC_RESULT_UNKNOWN);
    assert_int_equal(sj_objc_encoding_result("![32,32q]80@0:8"), SJ_OBJC_RESULT_UNKNOWN);
    assert_int_equal(sj_objc_encoding_result("(Mixed=qD)16@0:8"), SJ_OBJC_RESULT_UNKNOWN);
    assert_int_equal(sj_objc_encoding_result("{Unknown}16@0:8"), SJ_OBJC_RESULT_UNKNOWN);
}

static void test_endless_nesting_is_an_unknown_encoding(void **state)
{
    char types[4096];
    (void)state;
    memset(types, 0, sizeof(types));
    for (size_t i = 0; i + 3 < sizeof(types); i += 3) {
        memcpy(types + i, "{A=", 3);
    }
    assert_int_equal(sj_objc_encoding_result(types), SJ_OBJC_RESULT_UNKNOWN);
    memset(types, '^', sizeof(types) - 1);
    assert_int_equal(sj_objc_encoding_result(types), SJ_OBJC_RESULT_REGISTERS);
    memcpy(types, "{A=", 3);
    assert_int_equal(sj_objc_encoding_result(types), SJ_OBJC_RESULT_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_results_are_in_registers),
        cmocka_unit_test(test_large_results_are_in_memory),
        cmocka_unit_test(test_unknown_encodings_are_reported_as_such),
        cmocka_unit_test(test_endless_nesting_is_an_unknown_encoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
