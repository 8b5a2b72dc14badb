/* What entries of the allocator lead to when the agent has left. */
#include "agent/inproc/heap_guard/custody.h"

#include "tests/support/check.h"

enum { CODE_OF_AN_AGENT = 0x1234 };

static void nothing_leads_to_the_agent_that_left(void **state)
{
    (void)state;
    sj_custody *custody = sj_custody_make();
    assert_non_null(custody);
    const uint64_t code = (uint64_t)(uintptr_t)custody + SJ_CUSTODY_DATA_BYTES;
    for (uint32_t head = 0; head < SJ_HEADS; head++) {
        custody->originals[head] = 0x10000 + head;
        custody->goes_to[head] = CODE_OF_AN_AGENT;
        atomic_store(&custody->keeps_by[head], CODE_OF_AN_AGENT); /* a quarantine not ended */
    }
    sj_custody_take_over(custody);
    for (uint32_t head = SJ_HEAD_FREE; head < SJ_HEAD_SIGACTION; head++) {
        assert_in_range(custody->goes_to[head], code, code + SJ_CUSTODY_CODE_BYTES - 1);
    }
    for (uint32_t head = SJ_HEAD_SIGACTION; head < SJ_HEADS; head++) {
        assert_int_equal(custody->goes_to[head], custody->originals[head]);
    }
    for (uint32_t head = 0; head < SJ_HEADS; head++) {
        assert_int_equal(atomic_load(&custody->keeps_by[head]), 0);
    }
    assert_ptr_equal(sj_custody_find(), custody); /* by the next agent */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_leads_to_the_agent_that_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
