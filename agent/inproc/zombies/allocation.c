#include "agent/inproc/zombies/internal.h"

#include "agent/inproc/recorder/sys.h"

#include <string.h>

__thread int64_t sj_zombie_countdown __attribute__((tls_model("initial-exec")));
/* The thread's source of random numbers; 0: it has not allocated yet. */
static __thread uint64_t random_state __attribute__((tls_model("initial-exec")));

enum { UNWATCHED = 256 }; /* allocations between looks whether something is to be guarded again */

typedef void *(*new_function)(size_t bytes);
typedef void *(*new_two_function)(size_t first, size_t bytes); /* count or alignment */
typedef int (*new_posix_function)(void **block, size_t alignment, size_t bytes);

static uint64_t next_random(void)
{
    uint64_t state = random_state;
    if (state == 0) {
        state = (sj_arch_ticks() ^ (uint64_t)sj_sys_tid() << 32) | 1;
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    random_state = state;
    return state * UINT64_C(0x2545f4914f6cdd1d) >> 32;
}

/* The distance to the next guarded allocation is geometric, so that each has the same chance,
 * whatever was guarded before and however the program repeats itself: n minus a half times the
 * negative logarithm of a random number in (0, 1), rounded up. Fixed point with 16 bits behind the
 * point; log2(1 + f) is f + 0.3437 f (1 - f), right to 0.01. */
static int64_t next_distance(uint64_t one_in)
{
    enum { POINT = 16, ONE = 1 << POINT, BEND = 22522, LN_2 = 45426, WORD = 32 };
    const uint64_t random = (next_random() & UINT32_MAX) | 1;
    const uint32_t zeros = (uint32_t)__builtin_clzll(random) - WORD;
    const uint64_t fraction = (random << (zeros + 1) & UINT32_MAX) >> POINT;
    const uint64_t bend = (BEND * (fraction * (ONE - fraction) >> POINT)) >> POINT;
    const uint64_t negative_log = ((uint64_t)(zeros + 1) << POINT) - fraction - bend;
    const unsigned __int128 product =
        (unsigned __int128)negative_log * (2 * one_in - 1) * (uint64_t)LN_2;
    return 1 + (int64_t)(product >> (2 * POINT + 1));
}

/* The present allocation is to be guarded. The first look of a thread draws its first distance. */
static bool is_sampled(void)
{
    const sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    const bool is_first = random_state == 0;
    if (region == NULL || atomic_load(&sj_custody_now->shared.is_whole) == 0) {
        sj_zombie_countdown = UNWATCHED;
        return false;
    }
    const uint64_t one_in = region->settings.one_in;
    if (one_in == 0) {
        sj_zombie_countdown = UNWATCHED;
        return false;
    }
    sj_zombie_countdown = one_in == 1 ? 1 : next_distance(one_in);
    if (is_first && one_in > 1) {
        return --sj_zombie_countdown == 0;
    }
    return true;
}

static bool is_alignment(size_t alignment)
{
    return alignment != 0 && (alignment & (alignment - 1)) == 0;
}

static size_t at_least_usual(size_t alignment)
{
    return alignment > SJ_POOL_ALIGNMENT ? alignment : SJ_POOL_ALIGNMENT;
}

/* NULL: it is an ordinary allocation's turn. */
static void *new_sampled(size_t bytes, size_t alignment)
{
    if (!is_sampled()) {
        return NULL;
    }
    if (!sj_faults_are_handled()) {
        sj_pool_count_refused();
        return NULL;
    }
    return sj_pool_take(bytes, alignment);
}

void *sj_allocation_new(size_t bytes)
{
    void *block = new_sampled(bytes, SJ_POOL_ALIGNMENT);
    return block != NULL ? block : ((new_function)sj_zombie_originals[SJ_HEAD_MALLOC])(bytes);
}

void *sj_allocation_new_zeroed(size_t count, size_t bytes)
{
    size_t all;
    void *block =
        !__builtin_mul_overflow(count, bytes, &all) ? new_sampled(all, SJ_POOL_ALIGNMENT) : NULL;
    return block != NULL ? block
                         : ((new_two_function)sj_zombie_originals[SJ_HEAD_CALLOC])(count, bytes);
}

static void *new_aligned(sj_zombie_head head, size_t alignment, size_t bytes)
{
    void *block = is_alignment(alignment) ? new_sampled(bytes, at_least_usual(alignment)) : NULL;
    return block != NULL ? block : ((new_two_function)sj_zombie_originals[head])(alignment, bytes);
}

void *sj_allocation_new_aligned(size_t alignment, size_t bytes)
{
    return new_aligned(SJ_HEAD_ALIGNED_ALLOC, alignment, bytes);
}

void *sj_allocation_new_memalign(size_t alignment, size_t bytes)
{
    return new_aligned(SJ_HEAD_MEMALIGN, alignment, bytes);
}

int sj_allocation_new_posix(void **block, size_t alignment, size_t bytes)
{
    void *made = is_alignment(alignment) && alignment % sizeof(void *) == 0
                     ? new_sampled(bytes, at_least_usual(alignment))
                     : NULL;
    if (made != NULL) {
        *block = made;
        return 0;
    }
    return ((new_posix_function)sj_zombie_originals[SJ_HEAD_POSIX_MEMALIGN])(block, alignment,
                                                                             bytes);
}

void *sj_allocation_new_page(size_t bytes)
{
    void *block = new_sampled(bytes, SJ_POOL_PAGE);
    return block != NULL ? block : ((new_function)sj_zombie_originals[SJ_HEAD_VALLOC])(bytes);
}

void *sj_allocation_new_pages(size_t bytes)
{
    const size_t all = (bytes + SJ_POOL_PAGE - 1) & ~(size_t)(SJ_POOL_PAGE - 1);
    void *block = bytes <= all ? new_sampled(all, SJ_POOL_PAGE) : NULL;
    return block != NULL ? block : ((new_function)sj_zombie_originals[SJ_HEAD_PVALLOC])(bytes);
}

void sj_allocation_free(void *block)
{
    sj_pool_put(block, (uint64_t)(uintptr_t)__builtin_return_address(0));
}

size_t sj_allocation_size(void *block)
{
    const sj_pool_slot *slot = sj_pool_find((uint64_t)(uintptr_t)block);
    return slot != NULL && slot->address == (uint64_t)(uintptr_t)block ? slot->size : 0;
}

/* The new block is an ordinary one, or guarded if it is its turn. */
void *sj_allocation_resize(void *block, size_t bytes)
{
    const sj_pool_slot *slot = sj_pool_find((uint64_t)(uintptr_t)block);
    const bool is_live = slot != NULL && slot->address == (uint64_t)(uintptr_t)block &&
                         atomic_load(&slot->state) == SJ_SLOT_LIVE;
    if (!is_live || bytes == 0) {
        sj_pool_put(block, (uint64_t)(uintptr_t)__builtin_return_address(
                               0)); /* reports what is wrong with it */
        return is_live ? NULL : ((new_function)sj_zombie_originals[SJ_HEAD_MALLOC])(bytes);
    }
    void *moved = sj_allocation_new(bytes);
    if (moved != NULL) {
        memcpy(moved, block, bytes < slot->size ? bytes : slot->size);
        sj_pool_put(block, (uint64_t)(uintptr_t)__builtin_return_address(0));
    }
    return moved;
}
