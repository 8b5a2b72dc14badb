/* After the agent was unloaded, no entry of the allocator leads to it. */
#include "agent/inproc/heap_guard/residue.h"

#include "tests/support/check.h"

enum { ADDRESS_IN_AGENT = 0x1234 };

static void no_entry_leads_to_an_unloaded_agent(void **state)
{
    (void)state;
    sj_residue *residue = sj_residue_new();
    assert_non_null(residue);
    const uint64_t code = (uint64_t)(uintptr_t)residue + SJ_RESIDUE_DATA_BYTES;
    for (uint32_t entry = 0; entry < SJ_HEAP_ENTRIES; entry++) {
        residue->originals[entry] = 0x10000 + entry;
        residue->block_handlers[entry] = ADDRESS_IN_AGENT;
        /* Delaying may not have ended, so that the handler is still set. */
        atomic_store(&residue->delay_handlers[entry], ADDRESS_IN_AGENT);
    }
    sj_residue_point_at_own_code(residue);
    for (uint32_t entry = SJ_ENTRY_FREE; entry < SJ_ENTRY_SIGACTION; entry++) {
        assert_in_range(residue->block_handlers[entry], code, code + SJ_RESIDUE_CODE_BYTES - 1);
    }
    for (uint32_t entry = SJ_ENTRY_SIGACTION; entry < SJ_HEAP_ENTRIES; entry++) {
        assert_int_equal(residue->block_handlers[entry], residue->originals[entry]);
    }
    for (uint32_t entry = 0; entry < SJ_HEAP_ENTRIES; entry++) {
        assert_int_equal(atomic_load(&residue->delay_handlers[entry]), 0);
    }
    assert_ptr_equal(sj_residue_find(), residue); /* The next agent finds the same residue. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_entry_leads_to_an_unloaded_agent)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
