/* Tests that true return addresses, which the agent keeps beside a stack, are restored in a copy of
 * the stack. */
#include "agent/ptrace/remote_stubs.h"

#include "agent/abi/return_slots.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { THUNK = 0x7000, WORDS = 64, FIRST_DISPATCHED = 3, SECOND_DISPATCHED = 40 };

static uint64_t address_of(const void *object)
{
    return (uint64_t)(uintptr_t)object;
}

static sj_return_slot *map_region(void)
{
    void *region = mmap(NULL, SJ_RETURN_REGION_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(region, MAP_FAILED);
    return region;
}

static void test_original_return_addresses_are_restored(void **state)
{
    (void)state;
    uint64_t stack[WORDS] = {0};
    uint64_t copy[WORDS];
    const uint64_t low = address_of(stack);
    const uint64_t first_word = low % (UINT64_C(1) << SJ_RETURN_REGION_SHIFT) / sizeof(uint64_t);
    sj_return_slot **regions =
        mmap(NULL, SJ_RETURN_REGIONS * sizeof(*regions), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(regions, MAP_FAILED);
    sj_return_slot *slots = regions[low >> SJ_RETURN_REGION_SHIFT] = map_region();
    const sj_tracee self = {.pid = getpid(), .memory = open("/proc/self/mem", O_RDONLY)};
    const sj_remote_stubs stubs = {.thunk = THUNK, .return_regions = address_of(regions)};
    for (uint64_t i = 0; i < WORDS; i++) {
        copy[i] = i;
    }
    copy[FIRST_DISPATCHED] = copy[SECOND_DISPATCHED] = copy[WORDS - 1] = THUNK;
    slots[first_word + FIRST_DISPATCHED].return_address = 0x1111;
    slots[first_word + SECOND_DISPATCHED].return_address = 0x2222;
    slots[first_word + 1].return_address = 0x3333; /* the call has ended */
    /* The copy need not begin at a whole word. */
    sj_remote_stubs_put_back(&stubs, &self, low + 4, (uint8_t *)copy + 4, sizeof(copy) - 4);
    for (uint64_t i = 0; i < WORDS; i++) {
        const uint64_t right = i == FIRST_DISPATCHED    ? 0x1111
                               : i == SECOND_DISPATCHED ? 0x2222
                               : i == WORDS - 1         ? THUNK
                                                        : i;
        assert_int_equal(copy[i], right);
    }
    close(self.memory);
    munmap(slots, SJ_RETURN_REGION_BYTES);
    munmap(regions, SJ_RETURN_REGIONS * sizeof(*regions));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_original_return_addresses_are_restored)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
