/* Functions without a name: an address identifies a function only within its build. */
#include "collector-server/store/store.h"
#include "tests/support/check.h"

static const uint8_t first_id[] = {0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x01, 0x02};
static const uint8_t second_id[] = {0xaa, 0xbb, 0xcc, 0xde, 0xee, 0xff, 0x01, 0x02};
static const sj_slice first_build = {.data = first_id, .size = sizeof(first_id)};
static const sj_slice second_build = {.data = second_id, .size = sizeof(second_id)};

static void one_address_of_two_builds_is_two_functions(void **state)
{
    (void)state;
    assert_true(sj_store_address_key(first_build, 0x1130) ==
                sj_store_address_key(first_build, 0x1130));
    assert_true(sj_store_address_key(first_build, 0x1130) !=
                sj_store_address_key(second_build, 0x1130));
    assert_true(sj_store_address_key(first_build, 0x1130) !=
                sj_store_address_key(first_build, 0x1140));
}

static void one_code_in_files_of_one_name_is_one_function(void **state)
{
    (void)state;
    assert_true(sj_store_code_key("/old/bin/work", 77) == sj_store_code_key("/new/work", 77));
    assert_true(sj_store_code_key("/old/bin/work", 77) != sj_store_code_key("/old/bin/work", 78));
    assert_true(sj_store_code_key("/old/bin/work", 77) != sj_store_code_key("/old/bin/other", 77));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_address_of_two_builds_is_two_functions),
        cmocka_unit_test(one_code_in_files_of_one_name_is_one_function)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
