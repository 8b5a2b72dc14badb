#include "agent/inproc/heap_guard/internal.h"

#include "agent/inproc/recorder/sys.h"

#include <string.h>

__thread int64_t sj_zombie_countdown __attribute__((tls_model("initial-exec")));
/* The thread's source of random numbers; 0: it has not allocated yet. */
static __thread uint64_t random_state __attribute__((tls_model("initial-exec")));

enum { SHIFT_MASK = 31 };
enum { LOG_BITS = 30 };
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

/* Bit by bit: a number between 1 and 2 that is squared doubles its logarithm. */
static uint64_t negative_log2(uint32_t random)
{
    const uint32_t zeros = (uint32_t)__builtin_clz(random);
    uint64_t number = (uint64_t)random << zeros; /* 31 bits behind the point, as many below */
    uint64_t log = 0;
    for (uint32_t i = 0; i < LOG_BITS; i++) {
        number = number * number >> 31;
        const uint64_t bit = number >> 32;
        number >>= bit;
        log = log << 1 | bit;
    }
    return ((uint64_t)(zeros + 1) << LOG_BITS) - log;
}

/* n minus a half times the negative logarithm of a random number in (0, 1), rounded up. */
int64_t sj_sampling_distance(uint32_t random, uint64_t one_in)
{
    enum { LN_2 = 45426, LN_2_BITS = 16 };
    const unsigned __int128 product =
        (unsigned __int128)negative_log2(random | 1) * (2 * one_in - 1) * (uint64_t)LN_2;
    return 1 + (int64_t)(product >> (LOG_BITS + LN_2_BITS + 1));
}

/* The distance to the next guarded allocation is geometric, so that each has the same chance,
 * whatever was guarded before and however the program repeats itself. */
static int64_t next_distance(uint64_t one_in)
{
    return sj_sampling_distance((uint32_t)next_random(), one_in);
}

/* The overhead budget may have made it more. */
static uint64_t one_in_now(const sj_zombie_region *region)
{
    return (uint64_t)region->settings.one_in
           << (atomic_load_explicit(&region->sampling_shift, memory_order_relaxed) & SHIFT_MASK);
}

/* Where every allocation is looked at, this thread's distance to the next sampled one. */
static __thread int64_t left_to_sample __attribute__((tls_model("initial-exec")));

/* Every allocation is looked at. */
static bool is_named_or_sampled(const sj_zombie_region *region, size_t bytes, uint64_t site)
{
    const uint64_t one_in = one_in_now(region);
    sj_zombie_countdown = 1;
    if (left_to_sample == 0) {
        left_to_sample = next_distance(one_in);
    }
    if (--left_to_sample == 0) {
        return true;
    }
    return sj_guard_wants(region, bytes, site);
}

/* The present allocation is to be guarded. The first look of a thread draws its first distance. */
static bool is_sampled(size_t bytes, uint64_t site)
{
    const sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    const bool is_first = random_state == 0;
    if (region == NULL || atomic_load(&sj_custody_now->shared.is_whole) == 0) {
        sj_zombie_countdown = UNWATCHED;
        return false;
    }
    const uint64_t one_in = one_in_now(region);
    if (one_in == 0) {
        sj_zombie_countdown = UNWATCHED;
        return false;
    }
    if (sj_guard_is_forced()) {
        return true;
    }
    if (sj_guard_has_rules(region)) {
        return is_named_or_sampled(region, bytes, site);
    }
    sj_zombie_countdown = one_in == 1 ? 1 : next_distance(one_in);
    if (!is_first || one_in == 1) {
        return true;
    }
    if (--sj_zombie_countdown == 0) { /* the first is the one */
        sj_zombie_countdown = next_distance(one_in);
        return true;
    }
    return false;
}

static bool is_alignment(size_t alignment)
{
    return alignment != 0 && (alignment & (alignment - 1)) == 0;
}

static size_t at_least_usual(size_t alignment)
{
    return alignment > SJ_POOL_ALIGNMENT ? alignment : SJ_POOL_ALIGNMENT;
}

/* What the C++ library allocates by malloc it gives out by operator new, or not: not known. */
static uint32_t families_of(sj_zombie_head head, uint64_t site)
{
    const sj_custody *custody = sj_custody_now;
    const bool is_within = site >= custody->operators_low && site < custody->operators_high;
    return is_within ? (uint32_t)SJ_FAMILY_ANY : custody->families[head];
}

/* NULL: it is an ordinary allocation's turn. */
static void *new_sampled(size_t bytes, size_t alignment, uint32_t families, uint64_t site)
{
    if (!is_sampled(bytes, site)) {
        return NULL;
    }
    if (!sj_faults_are_handled()) {
        sj_pool_count_refused();
        return NULL;
    }
    return sj_pool_take(bytes, alignment, families);
}

/* What freed blocks keep is halved before an allocation fails. */
static void *new_ordinary(sj_zombie_head head, size_t bytes)
{
    const new_function original = (new_function)sj_zombie_originals[head];
    void *block = original(bytes);
    if (block == NULL && bytes != 0 && atomic_load(&sj_zombie_region_now) != NULL) {
        sj_pool_shrink();
        sj_quarantine_shrink();
        block = original(bytes);
    }
    return block;
}

static void *new_of(sj_zombie_head head, size_t bytes, uint64_t site)
{
    void *block = new_sampled(bytes, SJ_POOL_ALIGNMENT, families_of(head, site), site);
    return block != NULL ? block : new_ordinary(head, bytes);
}

static void *new_block(size_t bytes)
{
    return new_of(SJ_HEAD_MALLOC, bytes, SJ_SITE());
}

static void *new_zeroed(size_t count, size_t bytes)
{
    size_t all;
    const uint64_t site = SJ_SITE();
    const uint32_t families = families_of(SJ_HEAD_CALLOC, site);
    void *block = !__builtin_mul_overflow(count, bytes, &all)
                      ? new_sampled(all, SJ_POOL_ALIGNMENT, families, site)
                      : NULL;
    return block != NULL ? block
                         : ((new_two_function)sj_zombie_originals[SJ_HEAD_CALLOC])(count, bytes);
}

static void *new_aligned_of(sj_zombie_head head, size_t alignment, size_t bytes, uint64_t site)
{
    void *block = is_alignment(alignment)
                      ? new_sampled(bytes, at_least_usual(alignment), families_of(head, site), site)
                      : NULL;
    return block != NULL ? block : ((new_two_function)sj_zombie_originals[head])(alignment, bytes);
}

static void *new_aligned(size_t alignment, size_t bytes)
{
    return new_aligned_of(SJ_HEAD_ALIGNED_ALLOC, alignment, bytes, SJ_SITE());
}

static void *new_memalign(size_t alignment, size_t bytes)
{
    return new_aligned_of(SJ_HEAD_MEMALIGN, alignment, bytes, SJ_SITE());
}

static int new_posix(void **block, size_t alignment, size_t bytes)
{
    const uint64_t site = SJ_SITE();
    const uint32_t families = families_of(SJ_HEAD_POSIX_MEMALIGN, site);
    void *made = is_alignment(alignment) && alignment % sizeof(void *) == 0
                     ? new_sampled(bytes, at_least_usual(alignment), families, site)
                     : NULL;
    if (made != NULL) {
        *block = made;
        return 0;
    }
    return ((new_posix_function)sj_zombie_originals[SJ_HEAD_POSIX_MEMALIGN])(block, alignment,
                                                                             bytes);
}

static void *new_page(size_t bytes)
{
    const uint64_t site = SJ_SITE();
    void *block = new_sampled(bytes, SJ_POOL_PAGE, families_of(SJ_HEAD_VALLOC, site), site);
    return block != NULL ? block : ((new_function)sj_zombie_originals[SJ_HEAD_VALLOC])(bytes);
}

static void *new_pages(size_t bytes)
{
    const size_t all = (bytes + SJ_POOL_PAGE - 1) & ~(size_t)(SJ_POOL_PAGE - 1);
    const uint64_t site = SJ_SITE();
    const uint32_t families = families_of(SJ_HEAD_PVALLOC, site);
    void *block = bytes <= all ? new_sampled(all, SJ_POOL_PAGE, families, site) : NULL;
    return block != NULL ? block : ((new_function)sj_zombie_originals[SJ_HEAD_PVALLOC])(bytes);
}

/* Operators new that call another entry have not counted: that one does, once more, for an
 * allocation that was looked at here. */
static void *new_object(sj_zombie_head head, size_t bytes, uint64_t site)
{
    const sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    void *block = new_sampled(bytes, SJ_POOL_ALIGNMENT, sj_custody_now->families[head], site);
    if (block != NULL) {
        return block;
    }
    if (region != NULL && region->is_forwarding[head] != 0) {
        sj_zombie_countdown++;
    }
    return ((new_function)sj_zombie_originals[head])(bytes);
}

#define NEW_OBJECT(name, head)                                                                     \
    static void *name(size_t bytes)                                                                \
    {                                                                                              \
        return new_object(head, bytes, SJ_SITE());                                                 \
    }

NEW_OBJECT(new_one, SJ_HEAD_NEW)
NEW_OBJECT(new_one_nothrow, SJ_HEAD_NEW_NOTHROW)
NEW_OBJECT(new_array, SJ_HEAD_NEW_ARRAY)
NEW_OBJECT(new_array_nothrow, SJ_HEAD_NEW_ARRAY_NOTHROW)

const void *sj_allocation_giver(sj_zombie_head head)
{
    static const void *const givers[SJ_HEAD_FREE] = {
        [SJ_HEAD_MALLOC] = (const void *)new_block,
        [SJ_HEAD_CALLOC] = (const void *)new_zeroed,
        [SJ_HEAD_ALIGNED_ALLOC] = (const void *)new_aligned,
        [SJ_HEAD_MEMALIGN] = (const void *)new_memalign,
        [SJ_HEAD_POSIX_MEMALIGN] = (const void *)new_posix,
        [SJ_HEAD_VALLOC] = (const void *)new_page,
        [SJ_HEAD_PVALLOC] = (const void *)new_pages,
        [SJ_HEAD_NEW] = (const void *)new_one,
        [SJ_HEAD_NEW_NOTHROW] = (const void *)new_one_nothrow,
        [SJ_HEAD_NEW_ARRAY] = (const void *)new_array,
        [SJ_HEAD_NEW_ARRAY_NOTHROW] = (const void *)new_array_nothrow};
    return givers[head];
}

#define TAKE_BACK(name, families)                                                                  \
    static void name(void *block)                                                                  \
    {                                                                                              \
        sj_pool_put(block, SJ_SITE(), families);                                                   \
    }

TAKE_BACK(take_1, 1)
TAKE_BACK(take_2, 2)
TAKE_BACK(take_3, 3)
TAKE_BACK(take_4, 4)
TAKE_BACK(take_5, 5)
TAKE_BACK(take_6, 6)
TAKE_BACK(take_7, 7)

static size_t size_of(void *block)
{
    const sj_pool_slot *slot = sj_pool_find((uint64_t)(uintptr_t)block);
    return slot != NULL && slot->address == (uint64_t)(uintptr_t)block ? slot->size : 0;
}

static bool is_live(const void *block)
{
    const sj_pool_slot *slot = sj_pool_find((uint64_t)(uintptr_t)block);
    return slot != NULL && slot->address == (uint64_t)(uintptr_t)block &&
           atomic_load(&slot->state) == SJ_SLOT_LIVE;
}

/* The new block is an ordinary one, or guarded if it is its turn. */
static void *resize(void *block, size_t bytes)
{
    const uint64_t site = SJ_SITE();
    const uint32_t families = sj_custody_now->families[SJ_HEAD_REALLOC];
    if (!is_live(block) || bytes == 0) {
        const bool was_live = is_live(block);
        sj_pool_put(block, site, families); /* reports what is wrong with it */
        return was_live ? NULL : ((new_function)sj_zombie_originals[SJ_HEAD_MALLOC])(bytes);
    }
    void *moved = new_of(SJ_HEAD_MALLOC, bytes, site);
    if (moved != NULL) {
        const size_t held = size_of(block);
        memcpy(moved, block, bytes < held ? bytes : held);
        sj_pool_put(block, site, families);
    }
    return moved;
}

/* Of jemalloc: the logarithm of the alignment and a bit for zeroed memory in its flags. The new
 * block is an ordinary one. */
static void *resize_with_flags(void *block, size_t bytes, int flags)
{
    enum { ALIGNMENT = 63, ZEROED = 64 };
    const size_t alignment = (size_t)1 << (flags & ALIGNMENT);
    const uint64_t memalign = sj_zombie_originals[SJ_HEAD_MEMALIGN];
    const size_t held = is_live(block) ? size_of(block) : 0;
    const bool is_usual = alignment <= SJ_POOL_ALIGNMENT || memalign == 0;
    void *moved = is_usual ? ((new_function)sj_zombie_originals[SJ_HEAD_MALLOC])(bytes)
                           : ((new_two_function)memalign)(alignment, bytes);
    if (moved != NULL) {
        memcpy(moved, block, bytes < held ? bytes : held);
        if ((flags & ZEROED) != 0 && bytes > held) {
            memset((char *)moved + held, 0, bytes - held);
        }
        sj_pool_put(block, SJ_SITE(), SJ_FAMILY_ANY);
    }
    return moved;
}

const void *sj_allocation_taker(sj_zombie_head head)
{
    static const void *const takers[SJ_FAMILY_ANY + 1] = {NULL,
                                                          (const void *)take_1,
                                                          (const void *)take_2,
                                                          (const void *)take_3,
                                                          (const void *)take_4,
                                                          (const void *)take_5,
                                                          (const void *)take_6,
                                                          (const void *)take_7};
    switch (head) {
    case SJ_HEAD_REALLOC:
        return (const void *)resize;
    case SJ_HEAD_RALLOCX:
        return (const void *)resize_with_flags;
    case SJ_HEAD_USABLE_SIZE:
    case SJ_HEAD_SALLOCX:
    case SJ_HEAD_XALLOCX: /* cannot grow where it is */
        return (const void *)size_of;
    default:
        return takers[sj_custody_now->families[head] & SJ_FAMILY_ANY];
    }
}
