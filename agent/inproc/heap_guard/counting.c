/* Design notes
 *
 * While memory is counted, the patched entries of the allocator jump to the functions below. These
 * count the bytes that each thread allocates and frees. Each function runs the rest of its entry
 * (REST) as if calls were not counted. An allocation counts the usable bytes of the new block. A
 * free counts the same number, so that a freed block adds up to zero.
 *
 * glibc keeps the chunk size in the word before the block, from which header_bytes computes the
 * usable bytes. The first COMPARED results are compared with malloc_usable_size. If one differs, or
 * with another allocator, malloc_usable_size is called for every block.
 *
 * If an entry calls another entry, both would count. So the outer function discards the counts of
 * the inner one, by restoring the counters after REST. The counters are in the thread's recorder
 * slot. */
#include "agent/inproc/heap_guard/internal.h"

#include "agent/inproc/recorder/memory.h"

enum { COMPARED = 64, ALWAYS_ASK = INT32_MAX };

typedef void *(*new_function)(size_t bytes);
typedef void *(*new_two_function)(size_t first, size_t bytes);
typedef int (*new_posix_function)(void **block, size_t alignment, size_t bytes);
typedef void *(*resize_function)(void *block, size_t bytes);
typedef void *(*resize_flags_function)(void *block, size_t bytes, int flags);
typedef size_t (*size_function)(const void *block);

/* Number of blocks still to compare. ALWAYS_ASK: call malloc_usable_size for each block. Concurrent
 * decrements do no harm. */
static _Atomic int32_t remaining_comparisons = COMPARED;

static size_t bytes_by_allocator(const void *block)
{
    return ((size_function)sj_heap_originals[SJ_ENTRY_USABLE_SIZE])(block);
}

/* Returns the usable bytes by the header of a glibc chunk: its size and three flag bits. IS_MAPPED
 * says that the chunk is a mapping of its own, with a larger header. */
static size_t header_bytes(const void *block)
{
    enum { BITS = 7, IS_MAPPED = 2 };
    const size_t size = ((const size_t *)block)[-1];
    const size_t header = (size & IS_MAPPED) != 0 ? 2 * sizeof(size_t) : sizeof(size_t);
    return (size & ~(size_t)BITS) - header;
}

static __attribute__((noinline)) size_t compare_bytes(const void *block)
{
    const size_t bytes = bytes_by_allocator(block);
    if (atomic_load(&remaining_comparisons) != ALWAYS_ASK) {
        if (bytes == header_bytes(block)) {
            atomic_fetch_sub(&remaining_comparisons, 1);
        } else {
            atomic_store(&remaining_comparisons, ALWAYS_ASK);
        }
    }
    return bytes;
}

static inline size_t usable_bytes(const void *block)
{
    if (__builtin_expect(sj_pool_has((uint64_t)(uintptr_t)block), 0)) {
        const sj_pool_slot *slot = sj_pool_find((uint64_t)(uintptr_t)block);
        return slot != NULL ? slot->size : 0;
    }
    return __builtin_expect(atomic_load_explicit(&remaining_comparisons, memory_order_relaxed) > 0,
                            0)
               ? compare_bytes(block)
               : header_bytes(block);
}

#define REST(type, entry) ((type)sj_residue_now->uncounted[entry])

__thread uint64_t sj_counted_site;

/* Saves the return address into the program for functions that run inside REST and use
 * SJ_CALL_SITE. A tail call of REST does not need this. */
#define BEGIN_REST()                                                                               \
    const uint64_t outer_site = sj_counted_site;                                                   \
    sj_counted_site = SJ_CALL_SITE_OF_ENTRY()
#define END_REST() sj_counted_site = outer_site

static inline void *count_new(void *block)
{
    if (block != NULL) {
        const size_t bytes = usable_bytes(block);
        sj_recorder_count_memory(sj_recorder_memory(), SJ_SLOT_ALLOCATIONS, bytes);
    }
    return block;
}

static inline __attribute__((always_inline)) void count_freed(const void *block)
{
    if (block != NULL) {
        const size_t bytes = usable_bytes(block);
        sj_recorder_count_memory(sj_recorder_memory(), SJ_SLOT_FREES, bytes);
    }
}

/* These entries of glibc call no other entry, so the counters are not restored. */
static void *count_malloc(size_t bytes)
{
    BEGIN_REST();
    void *block = REST(new_function, SJ_ENTRY_MALLOC)(bytes);
    END_REST();
    return count_new(block);
}

static void *count_calloc(size_t count, size_t bytes)
{
    BEGIN_REST();
    void *block = REST(new_two_function, SJ_ENTRY_CALLOC)(count, bytes);
    END_REST();
    return count_new(block);
}

/* Counts a free, then frees the block. REST is a tail call, so its functions find the return
 * address without sj_counted_site. */
static void count_free(void *block)
{
    count_freed(block);
    REST(void (*)(void *), SJ_ENTRY_FREE)(block);
}

/* An operator new may throw past END_REST, so its return address is not saved. Functions that it
 * calls see the agent as their caller. */
#define COUNT_OPERATOR(name, entry)                                                                \
    static void *name(size_t bytes)                                                                \
    {                                                                                              \
        const sj_memory_counters before = sj_recorder_copy_memory();                               \
        void *block = REST(new_function, entry)(bytes);                                            \
        sj_recorder_restore_memory(&before);                                                       \
        return count_new(block);                                                                   \
    }

#define COUNT_NEW(name, entry)                                                                     \
    static void *name(size_t bytes)                                                                \
    {                                                                                              \
        const sj_memory_counters before = sj_recorder_copy_memory();                               \
        BEGIN_REST();                                                                              \
        void *block = REST(new_function, entry)(bytes);                                            \
        END_REST();                                                                                \
        sj_recorder_restore_memory(&before);                                                       \
        return count_new(block);                                                                   \
    }

#define COUNT_NEW_TWO(name, entry)                                                                 \
    static void *name(size_t first, size_t second)                                                 \
    {                                                                                              \
        const sj_memory_counters before = sj_recorder_copy_memory();                               \
        BEGIN_REST();                                                                              \
        void *block = REST(new_two_function, entry)(first, second);                                \
        END_REST();                                                                                \
        sj_recorder_restore_memory(&before);                                                       \
        return count_new(block);                                                                   \
    }

/* Counts the free first, because REST makes the block invalid. Passes three arguments, the most
 * that a freeing entry has. */
#define COUNT_FREE(name, entry)                                                                    \
    static void name(void *block, size_t second, size_t third)                                     \
    {                                                                                              \
        count_freed(block);                                                                        \
        const sj_memory_counters after = sj_recorder_copy_memory();                                \
        BEGIN_REST();                                                                              \
        REST(void (*)(void *, size_t, size_t), entry)(block, second, third);                       \
        END_REST();                                                                                \
        sj_recorder_restore_memory(&after);                                                        \
    }

COUNT_NEW(count_any_malloc, SJ_ENTRY_MALLOC)
COUNT_NEW_TWO(count_any_calloc, SJ_ENTRY_CALLOC)
COUNT_NEW_TWO(count_aligned_alloc, SJ_ENTRY_ALIGNED_ALLOC)
COUNT_NEW_TWO(count_memalign, SJ_ENTRY_MEMALIGN)
COUNT_NEW(count_valloc, SJ_ENTRY_VALLOC)
COUNT_NEW(count_pvalloc, SJ_ENTRY_PVALLOC)
COUNT_OPERATOR(count_operator, SJ_ENTRY_NEW)
COUNT_NEW_TWO(count_operator_nothrow, SJ_ENTRY_NEW_NOTHROW)
COUNT_OPERATOR(count_array, SJ_ENTRY_NEW_ARRAY)
COUNT_NEW_TWO(count_array_nothrow, SJ_ENTRY_NEW_ARRAY_NOTHROW)
COUNT_FREE(count_any_free, SJ_ENTRY_FREE)
COUNT_FREE(count_cfree, SJ_ENTRY_CFREE)
COUNT_FREE(count_free_sized, SJ_ENTRY_FREE_SIZED)
COUNT_FREE(count_free_aligned_sized, SJ_ENTRY_FREE_ALIGNED_SIZED)
COUNT_FREE(count_dallocx, SJ_ENTRY_DALLOCX)
COUNT_FREE(count_sdallocx, SJ_ENTRY_SDALLOCX)
COUNT_FREE(count_delete, SJ_ENTRY_DELETE)
COUNT_FREE(count_delete_nothrow, SJ_ENTRY_DELETE_NOTHROW)
COUNT_FREE(count_delete_sized, SJ_ENTRY_DELETE_SIZED)
COUNT_FREE(count_delete_aligned, SJ_ENTRY_DELETE_ALIGNED)
COUNT_FREE(count_delete_aligned_nothrow, SJ_ENTRY_DELETE_ALIGNED_NOTHROW)
COUNT_FREE(count_delete_sized_aligned, SJ_ENTRY_DELETE_SIZED_ALIGNED)
COUNT_FREE(count_delete_array, SJ_ENTRY_DELETE_ARRAY)
COUNT_FREE(count_delete_array_nothrow, SJ_ENTRY_DELETE_ARRAY_NOTHROW)
COUNT_FREE(count_delete_array_sized, SJ_ENTRY_DELETE_ARRAY_SIZED)
COUNT_FREE(count_delete_array_aligned, SJ_ENTRY_DELETE_ARRAY_ALIGNED)
COUNT_FREE(count_delete_array_aligned_nothrow, SJ_ENTRY_DELETE_ARRAY_ALIGNED_NOTHROW)
COUNT_FREE(count_delete_array_sized_aligned, SJ_ENTRY_DELETE_ARRAY_SIZED_ALIGNED)

static int count_posix_memalign(void **block, size_t alignment, size_t bytes)
{
    const sj_memory_counters before = sj_recorder_copy_memory();
    BEGIN_REST();
    const int failed = REST(new_posix_function, SJ_ENTRY_POSIX_MEMALIGN)(block, alignment, bytes);
    END_REST();
    sj_recorder_restore_memory(&before);
    (void)count_new(failed == 0 ? *block : NULL);
    return failed;
}

/* Counts a resized block as one free and one allocation, even if the block does not move. */
static void count_resized(const sj_memory_counters *before, bool is_freed, size_t old_bytes,
                          void *block)
{
    sj_recorder_restore_memory(before);
    if (is_freed) {
        sj_recorder_count_memory(sj_recorder_memory(), SJ_SLOT_FREES, old_bytes);
    }
    (void)count_new(block);
}

static void *count_realloc(void *block, size_t bytes)
{
    const sj_memory_counters before = sj_recorder_copy_memory();
    const size_t old_bytes = block != NULL ? usable_bytes(block) : 0;
    BEGIN_REST();
    void *resized = REST(resize_function, SJ_ENTRY_REALLOC)(block, bytes);
    END_REST();
    count_resized(&before, block != NULL && (resized != NULL || bytes == 0), old_bytes, resized);
    return resized;
}

static void *count_rallocx(void *block, size_t bytes, int flags)
{
    const sj_memory_counters before = sj_recorder_copy_memory();
    const size_t old_bytes = usable_bytes(block);
    BEGIN_REST();
    void *resized = REST(resize_flags_function, SJ_ENTRY_RALLOCX)(block, bytes, flags);
    END_REST();
    count_resized(&before, resized != NULL, old_bytes, resized);
    return resized;
}

static bool is_c_library(const sj_zombie_region *region)
{
    return region->heap_entries[SJ_ENTRY_SIGACTION] != 0 &&
           region->parts[SJ_ENTRY_SIGACTION] == SJ_HEAP_ALLOCATOR;
}

/* True if calls of the entry are counted. An operator new that calls another entry is not counted,
 * because the other entry counts. */
static bool is_counted(const sj_zombie_region *region, sj_heap_entry entry)
{
    return region->heap_entries[entry] != 0 && region->parts[entry] == SJ_HEAP_ALLOCATOR &&
           region->is_forwarding[entry] == 0;
}

uint64_t sj_counting_entry(const sj_zombie_region *region, sj_heap_entry entry)
{
#define ENTRY(entry, function) [SJ_ENTRY_##entry] = (uint64_t)(uintptr_t)function
    static const uint64_t entries[SJ_HEAP_ENTRIES] = {
        ENTRY(MALLOC, count_any_malloc),
        ENTRY(CALLOC, count_any_calloc),
        ENTRY(ALIGNED_ALLOC, count_aligned_alloc),
        ENTRY(MEMALIGN, count_memalign),
        ENTRY(POSIX_MEMALIGN, count_posix_memalign),
        ENTRY(VALLOC, count_valloc),
        ENTRY(PVALLOC, count_pvalloc),
        ENTRY(NEW, count_operator),
        ENTRY(NEW_NOTHROW, count_operator_nothrow),
        ENTRY(NEW_ARRAY, count_array),
        ENTRY(NEW_ARRAY_NOTHROW, count_array_nothrow),
        ENTRY(FREE, count_any_free),
        ENTRY(REALLOC, count_realloc),
        ENTRY(CFREE, count_cfree),
        ENTRY(FREE_SIZED, count_free_sized),
        ENTRY(FREE_ALIGNED_SIZED, count_free_aligned_sized),
        ENTRY(DALLOCX, count_dallocx),
        ENTRY(SDALLOCX, count_sdallocx),
        ENTRY(RALLOCX, count_rallocx),
        ENTRY(DELETE, count_delete),
        ENTRY(DELETE_NOTHROW, count_delete_nothrow),
        ENTRY(DELETE_SIZED, count_delete_sized),
        ENTRY(DELETE_ALIGNED, count_delete_aligned),
        ENTRY(DELETE_ALIGNED_NOTHROW, count_delete_aligned_nothrow),
        ENTRY(DELETE_SIZED_ALIGNED, count_delete_sized_aligned),
        ENTRY(DELETE_ARRAY, count_delete_array),
        ENTRY(DELETE_ARRAY_NOTHROW, count_delete_array_nothrow),
        ENTRY(DELETE_ARRAY_SIZED, count_delete_array_sized),
        ENTRY(DELETE_ARRAY_ALIGNED, count_delete_array_aligned),
        ENTRY(DELETE_ARRAY_ALIGNED_NOTHROW, count_delete_array_aligned_nothrow),
        ENTRY(DELETE_ARRAY_SIZED_ALIGNED, count_delete_array_sized_aligned)};
    static const uint64_t c_library_entries[SJ_HEAP_ENTRIES] = {
        ENTRY(MALLOC, count_malloc), ENTRY(CALLOC, count_calloc), ENTRY(FREE, count_free)};
#undef ENTRY
    if (!is_counted(region, entry)) {
        return 0;
    }
    return is_c_library(region) && c_library_entries[entry] != 0 ? c_library_entries[entry]
                                                                 : entries[entry];
}

bool sj_counting_is_possible(const sj_zombie_region *region)
{
    return region->heap_entries[SJ_ENTRY_USABLE_SIZE] != 0 &&
           region->parts[SJ_ENTRY_USABLE_SIZE] == SJ_HEAP_ALLOCATOR;
}

void sj_counting_begin(const sj_zombie_region *region)
{
    if (!is_c_library(region)) {
        atomic_store(&remaining_comparisons, ALWAYS_ASK);
    }
    for (uint32_t entry = 0; entry < SJ_HEAP_ENTRIES; entry++) {
        atomic_store(&sj_residue_now->counting_handlers[entry],
                     sj_counting_entry(region, (sj_heap_entry)entry));
    }
    atomic_store(&sj_recorder_counts_memory, &sj_residue_now->shared.is_whole);
}

void sj_counting_end(void)
{
    atomic_store(&sj_recorder_counts_memory, NULL);
    for (uint32_t entry = 0; entry < SJ_HEAP_ENTRIES; entry++) {
        atomic_store(&sj_residue_now->counting_handlers[entry], 0);
    }
}
