/* Design notes
 *
 * If the kernel has guard regions (Linux 6.13), a closed page is a guard region. It needs no
 * separate kernel mapping, and a forked child inherits it. A guard region loses the content of the
 * page. So the content of a freed block is saved in a ring buffer, and copied back when the program
 * uses the block. New contents overwrite the oldest ones. If other threads fill the whole ring
 * while a thread copies a content, this content may be wrong.
 *
 * On older kernels, pages are closed by mprotect, which keeps their content. Each closed page
 * between open pages then costs two kernel mappings. */
#include "agent/inproc/heap_guard/internal.h"

#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>

enum {
    ADVICE_GUARD_INSTALL = 102,
    ADVICE_GUARD_REMOVE = 103,
    GUARDED_BLOCKS_BY_PROTECTION = 28000
};

/* True if the kernel has refused a guard region, for example in locked memory. Then some pages are
 * closed by mprotect instead. */
static _Atomic bool has_protected_pages;

static long advise(uint64_t address, uint64_t bytes, int advice)
{
    return SJ_SYS(SYS_madvise, address, bytes, advice, 0, 0, 0);
}

static void *map_memory(uint64_t bytes, int protection)
{
    void *mapped =
        sj_sys_map(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return sj_sys_failed(mapped) ? NULL : mapped;
}

static bool has_guard_regions(void)
{
    void *page = map_memory(sj_page_bytes(), PROT_READ | PROT_WRITE);
    const bool has_them = page != NULL && advise((uint64_t)(uintptr_t)page, sj_page_bytes(),
                                                 ADVICE_GUARD_INSTALL) == 0;
    if (page != NULL) {
        (void)sj_sys_unmap(page, sj_page_bytes());
    }
    return has_them;
}

/* Maps the ring. It has at most a quarter of the memory that the policy allows, which suffices
 * because most blocks are much smaller than their pages. */
static bool map_ring(sj_pool *pool, uint64_t all_bytes, uint64_t memory_bytes)
{
    uint64_t bytes = sj_page_bytes();
    while (bytes * 8 <= memory_bytes && bytes < all_bytes) {
        bytes *= 2;
    }
    pool->saved = map_memory(bytes, PROT_READ | PROT_WRITE);
    pool->saved_bytes = pool->saved != NULL ? bytes : 0;
    return pool->saved != NULL;
}

bool sj_pages_map_pool(sj_pool *pool, uint32_t slots, uint64_t memory_bytes)
{
    uint64_t all_bytes = sj_pool_size_classes(pool, slots);
    pool->page_bytes = sj_page_bytes();
    pool->has_guards = has_guard_regions() && map_ring(pool, all_bytes, memory_bytes) ? 1 : 0;
    if (pool->has_guards == 0 && slots > GUARDED_BLOCKS_BY_PROTECTION) {
        all_bytes = sj_pool_size_classes(pool, GUARDED_BLOCKS_BY_PROTECTION);
    }
    while ((UINT64_C(1) << pool->shift) < all_bytes + sj_page_bytes()) {
        pool->shift++;
    }
    pool->base = (uint64_t)(uintptr_t)map_memory(UINT64_C(1) << pool->shift, PROT_NONE);
    sj_pool_place_classes(pool);
    if (pool->base != 0 && pool->has_guards != 0) {
        (void)advise(pool->base, UINT64_C(1) << pool->shift, MADV_NOHUGEPAGE);
    }
    return pool->base != 0;
}

/* Number of times that mprotect closed pages although the kernel has guard regions. It never
 * decreases and is limited, because a process can have only a limited number of kernel mappings. */
static _Atomic uint32_t protected_blocks;

bool sj_pages_close(uint64_t address, uint64_t bytes)
{
    if (sj_heap_pool.has_guards != 0) {
        if (advise(address, bytes, ADVICE_GUARD_INSTALL) == 0) {
            return true;
        }
        atomic_store(&has_protected_pages, true);
        /* The program has locked its memory (mlockall), so the kernel refuses guard regions. */
        if (atomic_fetch_add(&protected_blocks, 1) >= GUARDED_BLOCKS_BY_PROTECTION) {
            atomic_fetch_sub(&protected_blocks, 1);
            return false;
        }
    }
    return sj_sys_protect((void *)(uintptr_t)address, bytes, PROT_NONE) == 0;
}

bool sj_pages_open(uint64_t address, uint64_t bytes)
{
    const bool has_guards = sj_heap_pool.has_guards != 0;
    if (has_guards && advise(address, bytes, ADVICE_GUARD_REMOVE) != 0) {
        return false;
    }
    return (has_guards && !atomic_load_explicit(&has_protected_pages, memory_order_relaxed)) ||
           sj_sys_protect((void *)(uintptr_t)address, bytes, PROT_READ | PROT_WRITE) == 0;
}

void sj_pages_open_touched(uint64_t page)
{
    if (sj_heap_pool.has_guards != 0) {
        (void)advise(page, sj_page_bytes(), ADVICE_GUARD_REMOVE);
    }
    (void)sj_sys_protect((void *)(uintptr_t)page, sj_page_bytes(), PROT_READ | PROT_WRITE);
}

bool sj_pages_close_slot(uint64_t slot_start, uint64_t slot_bytes)
{
    return (sj_heap_pool.has_guards == 0 ||
            sj_sys_protect((void *)(uintptr_t)slot_start, slot_bytes, PROT_READ | PROT_WRITE) ==
                0) &&
           sj_pages_close(slot_start, slot_bytes);
}

void sj_pages_open_all(sj_pool *pool)
{
    const uint64_t bytes = UINT64_C(1) << pool->shift;
    if (pool->has_guards != 0) {
        (void)advise(pool->base, bytes, ADVICE_GUARD_REMOVE);
        (void)advise((uint64_t)(uintptr_t)pool->saved, pool->saved_bytes, MADV_DONTNEED);
        atomic_store(&pool->saved_floor, atomic_load(&pool->saved_next));
    }
    (void)sj_sys_protect((void *)(uintptr_t)pool->base, bytes, PROT_READ | PROT_WRITE);
}

/* Copies to or from the ring, in two parts if the bytes cross its end. */
static void copy_ring(const sj_pool *pool, uint64_t position, void *bytes, uint64_t count,
                      bool to_ring)
{
    while (count != 0) {
        const uint64_t at = position & (pool->saved_bytes - 1);
        const uint64_t part = count < pool->saved_bytes - at ? count : pool->saved_bytes - at;
        memcpy(to_ring ? pool->saved + at : (uint8_t *)bytes, to_ring ? bytes : pool->saved + at,
               part);
        bytes = (uint8_t *)bytes + part;
        position += part;
        count -= part;
    }
}

void sj_pages_save(sj_pool_slot *slot)
{
    /* A large block is saved only if it needs at most this part of the ring: it must not overwrite
     * the contents of many small blocks. */
    enum { LARGEST_PART = 16 };
    sj_pool *pool = &sj_heap_pool;
    slot->saved_at = 0;
    if (pool->has_guards == 0 ||
        (slot->size > pool->saved_bytes / LARGEST_PART && slot->size > SJ_POOL_SMALL_BYTES) ||
        slot->size > pool->saved_bytes) {
        return;
    }
    const uint64_t position = atomic_fetch_add(&pool->saved_next, slot->size);
    copy_ring(pool, position, (void *)(uintptr_t)slot->address, slot->size, true);
    slot->saved_at = position + 1;
}

bool sj_pages_is_saved(const sj_pool_slot *slot)
{
    const sj_pool *pool = &sj_heap_pool;
    const uint64_t position = slot->saved_at - 1;
    return slot->saved_at != 0 && position >= atomic_load(&pool->saved_floor) &&
           atomic_load(&pool->saved_next) - position <= pool->saved_bytes;
}

void sj_pages_restore(const sj_pool_slot *slot, uint64_t page)
{
    const uint64_t low = slot->address > page ? slot->address : page;
    const uint64_t slot_end = slot->address + slot->size;
    const uint64_t high = slot_end < page + sj_page_bytes() ? slot_end : page + sj_page_bytes();
    if (low >= high || !sj_pages_is_saved(slot)) {
        return;
    }
    copy_ring(&sj_heap_pool, slot->saved_at - 1 + (low - slot->address), (void *)(uintptr_t)low,
              high - low, false);
    if (!sj_pages_is_saved(slot)) { /* Another thread has overwritten the content meanwhile. */
        memset((void *)(uintptr_t)low, 0, high - low);
    }
}

/* Releases the memory of the whole pages between two positions of the ring. */
static void release_ring(const sj_pool *pool, uint64_t from, uint64_t to)
{
    const uint64_t low = sj_page_round_up(from);
    const uint64_t high = sj_page_start(to);
    for (uint64_t at = low; at < high;) {
        const uint64_t position = at & (pool->saved_bytes - 1);
        const uint64_t part =
            high - at < pool->saved_bytes - position ? high - at : pool->saved_bytes - position;
        (void)advise((uint64_t)(uintptr_t)pool->saved + position, part, MADV_DONTNEED);
        at += part;
    }
}

void sj_pages_forget_half(sj_pool *pool)
{
    const uint64_t end = atomic_load(&pool->saved_next);
    uint64_t floor = atomic_load(&pool->saved_floor);
    const uint64_t first = end - floor > pool->saved_bytes ? end - pool->saved_bytes : floor;
    const uint64_t half = first + (end - first + 1) / 2;
    if (half > floor && atomic_compare_exchange_strong(&pool->saved_floor, &floor, half)) {
        release_ring(pool, first, half);
    }
}
