/* Slots of guarded blocks consist of whole pages of any size. */
#include "agent/inproc/heap_guard/internal.h"

#include "tests/support/check.h"
#include "tests/support/page_size.h"

static void slots_have_whole_pages_of_any_size(void **state)
{
    static const uint32_t blocks[SJ_POOL_CLASSES] = {16 << 10, 128 << 10, 1 << 20};
    (void)state;
    for (page_bytes = 4096; page_bytes <= 65536; page_bytes *= 4) {
        sj_pool pool = {0};
        uint64_t end = 0;
        assert_true(sj_pool_size_classes(&pool, 100) % page_bytes == 0);
        for (uint32_t i = 0; i < SJ_POOL_CLASSES; i++) {
            assert_int_equal(pool.classes[i].start, end);
            assert_int_equal(pool.classes[i].slot_bytes % page_bytes, 0);
            assert_true(pool.classes[i].slot_bytes - page_bytes >= blocks[i]);
            end += (uint64_t)pool.classes[i].slots * pool.classes[i].slot_bytes;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(slots_have_whole_pages_of_any_size)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
