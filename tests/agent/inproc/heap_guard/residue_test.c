/* After the agent was unloaded, no entry of the allocator leads to it. */
#include "agent/inproc/heap_guard/residue.h"

#include "tests/support/check.h"

enum { ADDRESS_IN_AGENT = 0x1234 };

static void no_entry_leads_to_an_unloaded_agent(void **state)
{
    (void)state;
    sj_residue *custody = sj_residue_new();
    assert_non_null(custody);
    const uint64_t code = (uint64_t)(uintptr_t)custody + SJ_RESIDUE_DATA_BYTES;
    for (uint32_t head = 0; head < SJ_HEADS; head++) {
        custody->originals[head] = 0x10000 + head;
        custody->block_handlers[head] = ADDRESS_IN_AGENT;
        /* As if delaying had never ended. */
        atomic_store(&custody->delay_handlers[head], ADDRESS_IN_AGENT);
    }
    sj_residue_point_at_own_code(custody);
    for (uint32_t head = SJ_HEAD_FREE; head < SJ_HEAD_SIGACTION; head++) {
        assert_in_range(custody->block_handlers[head], code, code + SJ_RESIDUE_CODE_BYTES - 1);
    }
    for (uint32_t head = SJ_HEAD_SIGACTION; head < SJ_HEADS; head++) {
        assert_int_equal(custody->block_handlers[head], custody->originals[head]);
    }
    for (uint32_t head = 0; head < SJ_HEADS; head++) {
        assert_int_equal(atomic_load(&custody->delay_handlers[head]), 0);
    }
    assert_ptr_equal(sj_residue_find(), custody); /* The next agent finds the same residue. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_entry_leads_to_an_unloaded_agent)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
