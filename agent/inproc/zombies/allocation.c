#include "agent/inproc/zombies/internal.h"

#include "agent/inproc/recorder/sys.h"

#include <string.h>

__thread int64_t sj_zombie_countdown __attribute__((tls_model("initial-exec")));
/* The thread's source of random numbers; 0: it has not allocated yet. */
static __thread uint64_t random_state __attribute__((tls_model("initial-exec")));

uint64_t sj_zombie_originals[SJ_HEADS];

typedef void *(*new_function)(size_t bytes);
typedef void *(*new_zeroed_function)(size_t count, size_t bytes);

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
    if (region == NULL) {
        sj_zombie_countdown = 1 << 16;
        return false;
    }
    const uint64_t one_in = region->settings.one_in;
    if (one_in == 0) {
        sj_zombie_countdown = 1 << 16;
        return false;
    }
    sj_zombie_countdown = one_in == 1 ? 1 : next_distance(one_in);
    if (is_first && one_in > 1) {
        return --sj_zombie_countdown == 0;
    }
    return true;
}

void *sj_allocation_new(size_t bytes)
{
    void *block = is_sampled() ? sj_pool_take(bytes) : NULL;
    return block != NULL ? block : ((new_function)sj_zombie_originals[SJ_HEAD_MALLOC])(bytes);
}

void *sj_allocation_new_zeroed(size_t count, size_t bytes)
{
    size_t all;
    void *block =
        !__builtin_mul_overflow(count, bytes, &all) && is_sampled() ? sj_pool_take(all) : NULL;
    return block != NULL ? block
                         : ((new_zeroed_function)sj_zombie_originals[SJ_HEAD_CALLOC])(count, bytes);
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
