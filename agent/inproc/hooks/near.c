/* Design notes
 *
 * The agent reads the list of the process's mappings to find free address space. This takes long if
 * the list is long. A runtime compiles thousands of methods one by one, each with a page of stubs.
 * The agent cuts those pages from one mapping, which stays one entry of the list.
 *
 * The main thread's stack grows down into the gap below it, so an area in that gap is placed at the
 * gap's low end. The kernel leaves as much space as the stack's limit, and at least 128 MiB. */
#include "agent/abi/page.h"
#include "agent/inproc/hooks/internal.h"
#include "agent/inproc/recorder/maps.h"
#include "agent/inproc/recorder/sys.h"

#include <sys/mman.h>

enum {
    LOWEST_ADDRESS = 1 << 20,
    GUARD_BYTES = 64 * 1024,
    HUGE_PAGE = 1 << 21,
    POOL_BYTES = 1 << 20,
    STACK_BYTES = 1 << 26 /* least space that is kept free below the stack */
};

static uint64_t max_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t min_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns the highest place in from..to, with unmapped space at both ends. A large area begins at a
 * huge page's boundary if that fits. */
static uint64_t place_high(uint64_t from, uint64_t to, uint64_t bytes)
{
    const uint64_t place = (to - GUARD_BYTES - bytes) & ~(uint64_t)(SJ_PAGE_MOST_BYTES - 1);
    const uint64_t huge = place & ~((uint64_t)HUGE_PAGE - 1);
    return bytes >= HUGE_PAGE && huge >= from + GUARD_BYTES ? huge : place;
}

/* Returns the lowest place above `from`, with unmapped space in between. */
static uint64_t place_low(uint64_t from)
{
    return (from + GUARD_BYTES + SJ_PAGE_MOST_BYTES - 1) & ~(uint64_t)(SJ_PAGE_MOST_BYTES - 1);
}

/* Returns the place for `bytes` in the gap from `from` to `next`, or to `highest` if that is lower.
 * Returns 0 if they do not fit. */
static uint64_t place_in(uint64_t from, const sj_mapping *next, uint64_t highest, uint64_t bytes)
{
    const uint64_t gap_end = min_of(next->low, SJ_ARCH_ADDRESS_END);
    const uint64_t stack_bytes = next->is_stack ? STACK_BYTES : 0;
    const uint64_t to = min_of(gap_end - min_of(stack_bytes, gap_end), highest);
    if (to <= from || to - from < bytes + UINT64_C(3) * GUARD_BYTES) {
        return 0;
    }
    return next->is_stack ? place_low(from) : place_high(from, to, bytes);
}

/* Returns the address of a gap between mappings for `bytes`, or 0 if there is none. Prefers the
 * highest place below the module, where no mapping grows. Else returns the highest place above the
 * module that jumps reach, which leaves space for the program's heap. */
static uint64_t find_place(uint64_t low, uint64_t high, uint64_t bytes)
{
    const uint64_t lowest =
        high > SJ_ARCH_REACH_BYTES ? high - SJ_ARCH_REACH_BYTES : LOWEST_ADDRESS;
    const uint64_t highest = low + SJ_ARCH_REACH_BYTES;
    uint64_t below = 0;
    uint64_t above = 0;
    uint64_t gap_low = LOWEST_ADDRESS;
    char buffer[SJ_MAPS_BYTES];
    sj_maps maps;
    sj_mapping mapping;
    if (!sj_maps_open(&maps, buffer, sizeof(buffer))) {
        return 0;
    }
    for (bool has_more = true; has_more; gap_low = mapping.high) {
        has_more = sj_maps_next(&maps, &mapping);
        if (!has_more) {
            mapping = (sj_mapping){.low = SJ_ARCH_ADDRESS_END, .high = SJ_ARCH_ADDRESS_END};
        }
        const uint64_t from = max_of(gap_low, max_of(lowest, LOWEST_ADDRESS));
        const uint64_t place = place_in(from, &mapping, highest, bytes);
        below = place != 0 && place < low ? place : below;
        above = place > low ? place : above;
    }
    sj_maps_close(&maps);
    return below != 0 ? below : above;
}

/* The unused rest of the mapping from which small areas are cut. */
static uint64_t pool_low;
static uint64_t pool_high;

/* True if jumps from every address in [low, high) reach the area. */
static bool is_in_reach(uint64_t place, uint64_t bytes, uint64_t low, uint64_t high)
{
    return (place > low || high - place <= SJ_ARCH_REACH_BYTES) &&
           (place < low || place + bytes - low <= SJ_ARCH_REACH_BYTES);
}

void *sj_near_allocate(uint64_t low, uint64_t high, uint64_t bytes)
{
    if (pool_high - pool_low < bytes || !is_in_reach(pool_low, bytes, low, high)) {
        void *fresh = bytes < POOL_BYTES ? sj_near_map(low, high, POOL_BYTES) : NULL;
        if (fresh == NULL) {
            return sj_near_map(low, high, bytes);
        }
        sj_near_release();
        pool_low = (uint64_t)(uintptr_t)fresh;
        pool_high = pool_low + POOL_BYTES;
    }
    void *place = (void *)(uintptr_t)pool_low;
    pool_low += bytes;
    return place;
}

void sj_near_release(void)
{
    if (pool_low < pool_high) {
        (void)sj_sys_unmap((void *)(uintptr_t)pool_low, pool_high - pool_low);
    }
    pool_low = 0;
    pool_high = 0;
}

void *sj_near_map(uint64_t low, uint64_t high, uint64_t bytes)
{
    for (uint32_t attempt = 0; attempt < 4; attempt++) {
        const uint64_t place = find_place(low, high, bytes);
        if (place == 0) {
            return NULL;
        }
        void *memory = sj_sys_map((void *)(uintptr_t)place, bytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (memory == (void *)(uintptr_t)place) {
            if (bytes >= HUGE_PAGE) {
                /* Huge pages cause fewer misses of the instruction TLB: 1 to 2 ns less for each
                 * call of cc1, measured with 12 MB of stubs. This is only advice. */
                (void)SJ_SYS(SYS_madvise, memory, bytes, MADV_HUGEPAGE, 0, 0, 0);
            }
            return memory;
        }
        if (!sj_sys_failed(memory)) {
            (void)sj_sys_unmap(memory, bytes);
        }
    }
    return NULL;
}
