/* The load bias of a module with several executable segments. */
#include "agent/zombies/guard_sites.h"

#include "tests/support/check.h"
#include "tests/support/page_size.h"

#include <elf.h>

#define BIAS UINT64_C(0x7f0000000000)

/* The first segment ends in the page of the file in which the second one begins. */
static sj_elf_segment segments[] = {
    {.type = PT_LOAD, .flags = PF_R, .offset = 0, .address = 0, .file_bytes = 0x800},
    {.type = PT_LOAD,
     .flags = PF_R | PF_X,
     .offset = 0x1000,
     .address = 0x1000,
     .file_bytes = 0x300},
    {.type = PT_LOAD,
     .flags = PF_R | PF_X,
     .offset = 0x1300,
     .address = 0x4300,
     .file_bytes = 0x5000}};

static void expect(uint64_t low, uint64_t high, uint64_t offset, bool is_found)
{
    uint64_t bias = 0;
    const sj_elf elf = {.segments = segments, .segment_count = 3};
    const sj_guard_mapping mapping = {.low = BIAS + low, .high = BIAS + high, .offset = offset};
    assert_int_equal(sj_guard_sites_find_bias(&elf, &mapping, &bias), is_found);
    if (is_found) {
        assert_int_equal(bias, BIAS);
    }
}

static void each_executable_mapping_has_the_bias_of_its_module(void **state)
{
    (void)state;
    expect(0x1000, 0x2000, 0x1000, true);
    expect(0x4000, 0xa000, 0x1000, true);
    expect(0x6000, 0xa000, 0x3000, true); /* The kernel has split the mapping. */
    expect(0, 0x1000, 0, false);
}

static void mappings_of_large_pages_have_the_bias_of_their_module(void **state)
{
    (void)state;
    page_bytes = 65536;
    expect(0, 0x10000, 0, true); /* The page of all segments, mapped for the first code. */
    page_bytes = 4096;
    expect(0, 0x10000, 0, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_executable_mapping_has_the_bias_of_its_module),
        cmocka_unit_test(mappings_of_large_pages_have_the_bias_of_their_module)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
