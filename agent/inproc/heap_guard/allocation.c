#include "agent/inproc/heap_guard/internal.h"

#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>

__thread int64_t sj_sampling_countdown __attribute__((tls_model("initial-exec")));
/* State of the thread's random numbers. 0: the thread has not allocated yet. */
static __thread uint64_t random_state __attribute__((tls_model("initial-exec")));

enum { SHIFT_MASK = 31 };
enum { LOG_BITS = 30 };
/* After so many allocations a thread checks again if allocations are to be guarded. */
enum { RECHECK_DISTANCE = 256 };

typedef void *(*new_function)(size_t bytes);
/* `first` is a count or an alignment. */
typedef void *(*new_two_function)(size_t first, size_t bytes);
typedef int (*new_posix_function)(void **block, size_t alignment, size_t bytes);

static uint64_t next_random(void)
{
    uint64_t state = random_state;
    if (state == 0) {
        /* No thread id: a seccomp filter might end the program because of the system call. */
        state = (sj_arch_ticks() ^ (uint64_t)(uintptr_t)__builtin_thread_pointer() << 16) | 1;
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    random_state = state;
    return state * UINT64_C(0x2545f4914f6cdd1d) >> 32;
}

/* Computes the logarithm bit by bit: squaring a number between 1 and 2 doubles its logarithm. The
 * result has LOG_BITS fractional bits. */
static uint64_t negative_log2(uint32_t random)
{
    const uint32_t zeros = (uint32_t)__builtin_clz(random);
    /* A fixed-point number between 1 and 2 with 31 fractional bits. */
    uint64_t number = (uint64_t)random << zeros;
    uint64_t log = 0;
    for (uint32_t i = 0; i < LOG_BITS; i++) {
        number = number * number >> 31;
        const uint64_t bit = number >> 32;
        number >>= bit;
        log = log << 1 | bit;
    }
    return ((uint64_t)(zeros + 1) << LOG_BITS) - log;
}

/* Rounds up (one_in - 1/2) * -ln(r), where r is the random number scaled to the range (0, 1). */
int64_t sj_sampling_distance(uint32_t random, uint64_t one_in)
{
    enum { LN_2 = 45426, LN_2_BITS = 16 };
    const unsigned __int128 product =
        (unsigned __int128)negative_log2(random | 1) * (2 * one_in - 1) * (uint64_t)LN_2;
    return 1 + (int64_t)(product >> (LOG_BITS + LN_2_BITS + 1));
}

/* Returns the distance to the thread's next guarded allocation. Distances are geometric, so each
 * allocation has the same chance, however the program repeats itself. */
static int64_t next_distance(uint64_t one_in)
{
    return sj_sampling_distance((uint32_t)next_random(), one_in);
}

/* Returns the mean distance of sampled allocations. The overhead budget may have increased it by a
 * power of two. */
static uint64_t one_in_now(const sj_zombie_region *region)
{
    return (uint64_t)region->settings.one_in
           << (atomic_load_explicit(&region->sampling_shift, memory_order_relaxed) & SHIFT_MASK);
}

/* Distance to the thread's next sampled allocation, used while the policy has every allocation
 * checked. */
static __thread int64_t distance_while_checking __attribute__((tls_model("initial-exec")));

/* Counts what sampling left out: a sampled allocation stands for `one_in`, itself included. Nothing
 * has to be kept for each thread, which may end at any time. */
static void count_left_out(uint64_t one_in)
{
    if (one_in > 1) {
        sj_objects_count(not_sampled, one_in - 1);
    }
}

/* Counts an allocation that was checked and is not guarded. */
static void count_unnamed(void)
{
    enum { AT_ONCE = 64 };
    static __thread uint32_t unnamed __attribute__((tls_model("initial-exec")));
    if (++unnamed == AT_ONCE) {
        sj_objects_count(not_sampled, unnamed);
        unnamed = 0;
    }
}

/* True if an allocation is guarded, while the policy has every allocation checked: each sampled
 * allocation, and those that the policy names by size or caller. */
static bool is_named_or_sampled(const sj_zombie_region *region, size_t bytes, uint64_t site)
{
    const uint64_t one_in = one_in_now(region);
    sj_sampling_countdown = 1;
    if (distance_while_checking == 0) {
        distance_while_checking = next_distance(one_in);
    }
    if (--distance_while_checking == 0 || sj_guard_wants(region, bytes, site)) {
        return true;
    }
    count_unnamed();
    return false;
}

/* True if the current allocation is to be guarded. At a thread's first allocation, draws its first
 * distance. */
static bool is_sampled(size_t bytes, uint64_t site)
{
    const sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    const bool is_first = random_state == 0;
    if (region == NULL || atomic_load(&sj_residue_now->shared.is_whole) == 0) {
        sj_sampling_countdown = RECHECK_DISTANCE;
        return false;
    }
    const uint64_t one_in = one_in_now(region);
    if (one_in == 0) {
        sj_sampling_countdown = RECHECK_DISTANCE;
        return false;
    }
    if (sj_guard_is_forced()) {
        return true;
    }
    if (sj_guard_has_rules(region)) {
        return is_named_or_sampled(region, bytes, site);
    }
    sj_sampling_countdown = one_in == 1 ? 1 : next_distance(one_in);
    if (is_first && one_in != 1) {
        if (--sj_sampling_countdown != 0) {
            return false;
        }
        sj_sampling_countdown = next_distance(one_in); /* The first distance was 1. */
    }
    count_left_out(one_in);
    if (sj_pool_spares_blocks((uint32_t)next_random())) {
        sj_objects_count(refused_full, 1);
        return false;
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

/* Returns ANY for allocations by the C++ library's own code: it may hand a block of malloc to the
 * program as one of operator new. */
static uint32_t families_of(sj_heap_entry entry, uint64_t site)
{
    const sj_residue *residue = sj_residue_now;
    const bool is_in_operators = site >= residue->operators_low && site < residue->operators_high;
    return is_in_operators ? (uint32_t)SJ_FAMILY_ANY : residue->families[entry];
}

/* Lets the C library prepare its heap: its first malloc calls getrandom and brk. A program that has
 * allocated before it confines itself may not allow these calls later. */
static void prepare_c_library(void)
{
    const int64_t countdown = sj_sampling_countdown;
    /* So that this call is not sampled: an older malloc calls its own patched entry. */
    sj_sampling_countdown = RECHECK_DISTANCE;
    void *block = ((new_function)sj_heap_originals[SJ_ENTRY_MALLOC])(1);
    ((void (*)(void *))sj_heap_originals[SJ_ENTRY_FREE])(block);
    sj_sampling_countdown = countdown;
}

/* True for the first allocation of the process if the allocator is not the C library. This
 * allocation is left to the allocator and counted as not sampled: tcmalloc initializes itself at
 * its first malloc, and its realloc fails before that. */
static bool must_initialize_allocator(void)
{
    static _Atomic bool is_initialized;
    const sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    if (atomic_load_explicit(&is_initialized, memory_order_relaxed) || region == NULL ||
        atomic_exchange(&is_initialized, true)) {
        return false;
    }
    if (region->parts[SJ_ENTRY_SIGACTION] == SJ_HEAP_ALLOCATOR) {
        prepare_c_library();
        return false;
    }
    sj_objects_count(not_sampled, 1);
    return true;
}

/* Returns NULL if the allocation is not sampled. */
static void *allocate_sampled(size_t bytes, size_t alignment, uint32_t families, uint64_t site)
{
    if (must_initialize_allocator() || !is_sampled(bytes, site)) {
        return NULL;
    }
    if (!sj_recorder_may_call() || !sj_faults_are_handled()) {
        sj_pool_count_refused();
        return NULL;
    }
    return sj_pool_allocate(bytes, alignment, families);
}

/* Halves the memory of freed blocks before an allocation fails. */
static void *allocate_ordinary(sj_heap_entry entry, size_t bytes)
{
    const new_function original = (new_function)sj_heap_originals[entry];
    void *block = original(bytes);
    if (block == NULL && bytes != 0 && atomic_load(&sj_zombie_region_now) != NULL) {
        sj_pool_shrink();
        sj_delayed_free_shrink();
        block = original(bytes);
    }
    return block;
}

static void *allocate_block(sj_heap_entry entry, size_t bytes, uint64_t site)
{
    void *block = allocate_sampled(bytes, SJ_POOL_ALIGNMENT, families_of(entry, site), site);
    return block != NULL ? block : allocate_ordinary(entry, bytes);
}

static void *new_block(size_t bytes)
{
    return allocate_block(SJ_ENTRY_MALLOC, bytes, SJ_CALL_SITE());
}

static void *new_zeroed(size_t count, size_t bytes)
{
    size_t all;
    const uint64_t site = SJ_CALL_SITE();
    const uint32_t families = families_of(SJ_ENTRY_CALLOC, site);
    void *block = !__builtin_mul_overflow(count, bytes, &all)
                      ? allocate_sampled(all, SJ_POOL_ALIGNMENT, families, site)
                      : NULL;
    return block != NULL ? block
                         : ((new_two_function)sj_heap_originals[SJ_ENTRY_CALLOC])(count, bytes);
}

static void *new_aligned_of(sj_heap_entry entry, size_t alignment, size_t bytes, uint64_t site)
{
    void *block = is_alignment(alignment) ? allocate_sampled(bytes, at_least_usual(alignment),
                                                             families_of(entry, site), site)
                                          : NULL;
    return block != NULL ? block : ((new_two_function)sj_heap_originals[entry])(alignment, bytes);
}

static void *new_aligned(size_t alignment, size_t bytes)
{
    return new_aligned_of(SJ_ENTRY_ALIGNED_ALLOC, alignment, bytes, SJ_CALL_SITE());
}

static void *new_memalign(size_t alignment, size_t bytes)
{
    return new_aligned_of(SJ_ENTRY_MEMALIGN, alignment, bytes, SJ_CALL_SITE());
}

static int new_posix(void **block, size_t alignment, size_t bytes)
{
    const uint64_t site = SJ_CALL_SITE();
    const uint32_t families = families_of(SJ_ENTRY_POSIX_MEMALIGN, site);
    void *block_in_pool = is_alignment(alignment) && alignment % sizeof(void *) == 0
                              ? allocate_sampled(bytes, at_least_usual(alignment), families, site)
                              : NULL;
    if (block_in_pool != NULL) {
        *block = block_in_pool;
        return 0;
    }
    return ((new_posix_function)sj_heap_originals[SJ_ENTRY_POSIX_MEMALIGN])(block, alignment,
                                                                            bytes);
}

static void *new_page(size_t bytes)
{
    const uint64_t site = SJ_CALL_SITE();
    void *block =
        allocate_sampled(bytes, sj_page_bytes(), families_of(SJ_ENTRY_VALLOC, site), site);
    return block != NULL ? block : ((new_function)sj_heap_originals[SJ_ENTRY_VALLOC])(bytes);
}

static void *new_pages(size_t bytes)
{
    const size_t all = sj_page_round_up(bytes);
    const uint64_t site = SJ_CALL_SITE();
    const uint32_t families = families_of(SJ_ENTRY_PVALLOC, site);
    void *block = bytes <= all ? allocate_sampled(all, sj_page_bytes(), families, site) : NULL;
    return block != NULL ? block : ((new_function)sj_heap_originals[SJ_ENTRY_PVALLOC])(bytes);
}

/* Allocates by an operator new. The entry of an operator that calls malloc does not decrement the
 * sampling countdown, because malloc's entry does. This allocation was sampled already, so 1 is
 * added to the countdown before malloc runs. */
static void *new_object(sj_heap_entry entry, size_t bytes, uint64_t site)
{
    const sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    void *block = allocate_sampled(bytes, SJ_POOL_ALIGNMENT, sj_residue_now->families[entry], site);
    if (block != NULL) {
        return block;
    }
    if (region != NULL && region->is_forwarding[entry] != 0) {
        sj_sampling_countdown++;
    }
    return ((new_function)sj_heap_originals[entry])(bytes);
}

#define NEW_OBJECT(name, entry)                                                                    \
    static void *name(size_t bytes)                                                                \
    {                                                                                              \
        return new_object(entry, bytes, SJ_CALL_SITE());                                           \
    }

NEW_OBJECT(new_one, SJ_ENTRY_NEW)
NEW_OBJECT(new_one_nothrow, SJ_ENTRY_NEW_NOTHROW)
NEW_OBJECT(new_array, SJ_ENTRY_NEW_ARRAY)
NEW_OBJECT(new_array_nothrow, SJ_ENTRY_NEW_ARRAY_NOTHROW)

const void *sj_allocation_handler(sj_heap_entry entry)
{
    static const void *const handlers[SJ_ENTRY_FREE] = {
        [SJ_ENTRY_MALLOC] = (const void *)new_block,
        [SJ_ENTRY_CALLOC] = (const void *)new_zeroed,
        [SJ_ENTRY_ALIGNED_ALLOC] = (const void *)new_aligned,
        [SJ_ENTRY_MEMALIGN] = (const void *)new_memalign,
        [SJ_ENTRY_POSIX_MEMALIGN] = (const void *)new_posix,
        [SJ_ENTRY_VALLOC] = (const void *)new_page,
        [SJ_ENTRY_PVALLOC] = (const void *)new_pages,
        [SJ_ENTRY_NEW] = (const void *)new_one,
        [SJ_ENTRY_NEW_NOTHROW] = (const void *)new_one_nothrow,
        [SJ_ENTRY_NEW_ARRAY] = (const void *)new_array,
        [SJ_ENTRY_NEW_ARRAY_NOTHROW] = (const void *)new_array_nothrow};
    return handlers[entry];
}

#define FREE_FOR_FAMILIES(name, families)                                                          \
    static void name(void *block)                                                                  \
    {                                                                                              \
        sj_pool_free(block, SJ_CALL_SITE(), families);                                             \
    }

FREE_FOR_FAMILIES(free_for_1, 1)
FREE_FOR_FAMILIES(free_for_2, 2)
FREE_FOR_FAMILIES(free_for_3, 3)
FREE_FOR_FAMILIES(free_for_4, 4)
FREE_FOR_FAMILIES(free_for_5, 5)
FREE_FOR_FAMILIES(free_for_6, 6)
FREE_FOR_FAMILIES(free_for_7, 7)

static size_t size_of(const void *block)
{
    const sj_pool_slot *slot = sj_pool_find((uint64_t)(uintptr_t)block);
    return slot != NULL && slot->address == (uint64_t)(uintptr_t)block ? slot->size : 0;
}

/* Handles malloc_usable_size and its kind for a guarded block: checks the bytes around the block,
 * then returns its size. */
static size_t check_and_size(const void *block)
{
    sj_pool_slot *slot = sj_pool_find((uint64_t)(uintptr_t)block);
    if (slot != NULL && slot->address == (uint64_t)(uintptr_t)block) {
        sj_pool_check(slot, SJ_CALL_SITE_OF_ENTRY());
    }
    return size_of(block);
}

static bool is_live(const void *block)
{
    const sj_pool_slot *slot = sj_pool_find((uint64_t)(uintptr_t)block);
    return slot != NULL && slot->address == (uint64_t)(uintptr_t)block &&
           atomic_load(&slot->state) == SJ_SLOT_LIVE;
}

/* True if a large block changes little. Each resize of a guarded block copies it. So a program that
 * grows a large block in small steps would wait for a time that is the square of its size. */
static bool is_small_step(size_t old_bytes, size_t bytes)
{
    enum { PARTS = 4 };
    const size_t change = bytes > old_bytes ? bytes - old_bytes : old_bytes - bytes;
    return old_bytes > SJ_POOL_SMALL_BYTES && change < old_bytes / PARTS;
}

/* Allocates the block to which a guarded one moves. */
static void *new_place(size_t old_bytes, size_t bytes, uint64_t site)
{
    if (!is_small_step(old_bytes, bytes)) {
        return allocate_block(SJ_ENTRY_MALLOC, bytes, site);
    }
    sj_objects_count(refused_size, 1);
    return allocate_ordinary(SJ_ENTRY_MALLOC, bytes);
}

/* Moves a guarded block to a new one, which is guarded only if it is sampled. */
static void *resize(void *block, size_t bytes)
{
    const uint64_t site = SJ_CALL_SITE();
    const uint32_t families = sj_residue_now->families[SJ_ENTRY_REALLOC];
    if (!is_live(block) || bytes == 0) {
        const bool was_live = is_live(block);
        sj_pool_free(block, site, families); /* Reports what is wrong with the block. */
        return was_live ? NULL : ((new_function)sj_heap_originals[SJ_ENTRY_MALLOC])(bytes);
    }
    const size_t old_bytes = size_of(block);
    void *moved = new_place(old_bytes, bytes, site);
    if (moved != NULL) {
        memcpy(moved, block, bytes < old_bytes ? bytes : old_bytes);
        sj_pool_free(block, site, families);
    }
    return moved;
}

/* Handles jemalloc's rallocx. Its flags hold the logarithm of the alignment, and a bit for zeroed
 * memory. The new block is an ordinary one. */
static void *resize_with_flags(void *block, size_t bytes, int flags)
{
    enum { ALIGNMENT = 63, ZEROED = 64 };
    const size_t alignment = (size_t)1 << (flags & ALIGNMENT);
    const uint64_t memalign = sj_heap_originals[SJ_ENTRY_MEMALIGN];
    const size_t old_bytes = is_live(block) ? size_of(block) : 0;
    const bool is_usual = alignment <= SJ_POOL_ALIGNMENT || memalign == 0;
    void *moved = is_usual ? ((new_function)sj_heap_originals[SJ_ENTRY_MALLOC])(bytes)
                           : ((new_two_function)memalign)(alignment, bytes);
    if (moved != NULL) {
        memcpy(moved, block, bytes < old_bytes ? bytes : old_bytes);
        if ((flags & ZEROED) != 0 && bytes > old_bytes) {
            memset((char *)moved + old_bytes, 0, bytes - old_bytes);
        }
        sj_pool_free(block, SJ_CALL_SITE(), SJ_FAMILY_ANY);
    }
    return moved;
}

const void *sj_free_handler(sj_heap_entry entry)
{
    static const void *const free_handlers[SJ_FAMILY_ANY + 1] = {NULL,
                                                                 (const void *)free_for_1,
                                                                 (const void *)free_for_2,
                                                                 (const void *)free_for_3,
                                                                 (const void *)free_for_4,
                                                                 (const void *)free_for_5,
                                                                 (const void *)free_for_6,
                                                                 (const void *)free_for_7};
    switch (entry) {
    case SJ_ENTRY_REALLOC:
        return (const void *)resize;
    case SJ_ENTRY_RALLOCX:
        return (const void *)resize_with_flags;
    case SJ_ENTRY_USABLE_SIZE:
    case SJ_ENTRY_SALLOCX:
    case SJ_ENTRY_XALLOCX: /* A guarded block cannot grow in place. */
        return (const void *)check_and_size;
    default:
        return free_handlers[sj_residue_now->families[entry] & SJ_FAMILY_ANY];
    }
}
