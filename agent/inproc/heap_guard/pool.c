/* Design notes
 *
 * Rooms of equal size: a closed page, then data pages; behind the last room one more closed page.
 * A block lies at either end of its pages, at random, so that what runs over one of its ends meets
 * a closed page half of the time. Freed rooms wait in a queue, first in, first out; the room of a
 * block that was freed last is used again last. A room that cannot be put into the queue, because a
 * thread has stopped in the middle of taking one, is not used again. */
#include "agent/inproc/heap_guard/internal.h"

#include "agent/inproc/heap_guard/trace.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>

enum { PATTERN = 0xa5 };

static uint32_t record_bytes(const sj_pool *pool)
{
    return (uint32_t)sizeof(sj_pool_slot) + 2 * pool->stack_bytes;
}

sj_pool_slot *sj_pool_slot_at(uint32_t index)
{
    sj_pool *pool = &sj_zombie_pool;
    return (sj_pool_slot *)(pool->records + (uint64_t)index * record_bytes(pool));
}

static uint32_t index_of(const sj_pool_slot *slot)
{
    const sj_pool *pool = &sj_zombie_pool;
    return (uint32_t)((uint64_t)((const uint8_t *)slot - pool->records) / record_bytes(pool));
}

uint64_t sj_pool_room(const sj_pool_slot *slot)
{
    return sj_zombie_pool.base + (uint64_t)index_of(slot) * SJ_POOL_ROOM_BYTES;
}

sj_pool_slot *sj_pool_find(uint64_t address)
{
    const uint64_t index = (address - sj_zombie_pool.base) / SJ_POOL_ROOM_BYTES;
    return index < sj_zombie_pool.slots ? sj_pool_slot_at((uint32_t)index) : NULL;
}

static uint32_t round_to_power(uint64_t bytes)
{
    uint32_t shift = 0;
    while ((UINT64_C(1) << shift) < bytes) {
        shift++;
    }
    return shift;
}

bool sj_pool_open(const sj_zombie_settings *settings)
{
    sj_pool *pool = &sj_zombie_pool;
    pool->slots = settings->slots;
    pool->stack_bytes = settings->stack_bytes & ~(uint32_t)(SJ_POOL_ALIGNMENT - 1);
    if (!sj_pages_open_pool(pool, (uint64_t)settings->memory_kib << 10)) {
        return false;
    }
    const uint32_t queue_shift = round_to_power((uint64_t)pool->slots * 2);
    pool->queue_mask = (UINT32_C(1) << queue_shift) - 1;
    pool->records =
        sj_sys_map(NULL, (uint64_t)pool->slots * record_bytes(pool), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pool->queue = sj_sys_allocate(sizeof(uint32_t) << queue_shift);
    if (sj_sys_failed(pool->records) || pool->queue == NULL) {
        return false; /* the little that was mapped stays */
    }
    sj_custody_now->shared.pool_bytes = UINT64_C(1) << pool->shift;
    return true;
}

static bool is_live(uint32_t index)
{
    return atomic_load(&sj_pool_slot_at(index)->state) == SJ_SLOT_LIVE;
}

/* Rooms in a row in one call. */
static void give_back_rooms(uint32_t first, uint32_t end)
{
    if (first < end) {
        (void)SJ_SYS(SYS_madvise, sj_pool_room(sj_pool_slot_at(first)),
                     (uint64_t)(end - first) * SJ_POOL_ROOM_BYTES, MADV_DONTNEED, 0, 0, 0);
    }
}

void sj_pool_leave(void)
{
    sj_pool *pool = &sj_zombie_pool;
    uint32_t first = 0;
    const uint32_t fresh = atomic_load(&pool->fresh);
    sj_pages_open_all(pool);
    for (uint32_t i = 0; i < fresh; i++) {
        if (is_live(i)) {
            give_back_rooms(first, i);
            first = i + 1;
        } else {
            atomic_store(&sj_pool_slot_at(i)->state, SJ_SLOT_UNUSED);
            atomic_fetch_sub(&pool->held_bytes, sj_pool_slot_at(i)->held_bytes);
            sj_pool_slot_at(i)->held_bytes = 0;
        }
    }
    give_back_rooms(first, fresh);
    pool->was_left = 1;
}

static void count(size_t offset)
{
    sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    if (region != NULL) {
        atomic_fetch_add((_Atomic uint64_t *)((char *)region + offset), 1);
    }
}

#define COUNT(name) count(offsetof(sj_zombie_region, counters.name))

static sj_pool_slot *take_freed(void)
{
    sj_pool *pool = &sj_zombie_pool;
    uint32_t head = atomic_load(&pool->head);
    while (head != atomic_load(&pool->tail)) {
        _Atomic uint32_t *cell = &pool->queue[head & pool->queue_mask];
        if (atomic_load(cell) == 0) {
            return NULL; /* another thread is about to fill it */
        }
        if (atomic_compare_exchange_strong(&pool->head, &head, head + 1)) {
            const uint32_t held = atomic_exchange(cell, 0);
            return held != 0 ? sj_pool_slot_at(held - 1) : NULL;
        }
    }
    return NULL;
}

static void put_freed(const sj_pool_slot *slot)
{
    sj_pool *pool = &sj_zombie_pool;
    uint32_t empty = 0;
    const uint32_t tail = atomic_fetch_add(&pool->tail, 1);
    (void)atomic_compare_exchange_strong(&pool->queue[tail & pool->queue_mask], &empty,
                                         index_of(slot) + 1);
}

/* Rooms are used for the first time one after another, then again in the order of the frees. */
static sj_pool_slot *take_room(void)
{
    sj_pool *pool = &sj_zombie_pool;
    uint32_t fresh = atomic_load(&pool->fresh);
    while (fresh < pool->slots) {
        if (atomic_compare_exchange_strong(&pool->fresh, &fresh, fresh + 1)) {
            return sj_pool_slot_at(fresh);
        }
    }
    sj_pool_slot *slot = take_freed();
    if (slot != NULL) {
        COUNT(evicted);
    }
    return slot;
}

void sj_pool_go_on(void)
{
    sj_pool *pool = &sj_zombie_pool;
    const uint32_t fresh = atomic_load(&pool->fresh);
    memset(pool->queue, 0, ((uint64_t)pool->queue_mask + 1) * sizeof(*pool->queue));
    atomic_store(&pool->head, 0);
    atomic_store(&pool->tail, 0);
    for (uint32_t i = 0; i < fresh; i++) {
        if (!is_live(i)) {
            put_freed(sj_pool_slot_at(i));
        }
    }
}

/* The caller has the room alone. */
static void empty_room(sj_pool_slot *slot)
{
    if (slot->held_bytes != 0) {
        (void)SJ_SYS(SYS_madvise, sj_pool_room(slot) + SJ_POOL_PAGE, SJ_POOL_BLOCK_MAX_BYTES,
                     MADV_DONTNEED, 0, 0, 0);
        atomic_fetch_sub(&sj_zombie_pool.held_bytes, slot->held_bytes);
        slot->held_bytes = 0;
    }
}

/* Drops the content of freed blocks, the oldest first, which stay closed: at most `most`, and no
 * more than until `limit_bytes` are held. A use of one then finds zeros if the program goes on. */
static void empty_freed(uint32_t most, uint64_t limit_bytes)
{
    sj_pool *pool = &sj_zombie_pool;
    for (uint32_t i = 0; i < most && atomic_load(&pool->held_bytes) > limit_bytes; i++) {
        sj_pool_slot *slot = take_freed();
        if (slot == NULL) {
            return;
        }
        if (slot->held_bytes != 0) {
            COUNT(emptied);
        }
        empty_room(slot);
        put_freed(slot);
    }
}

void sj_pool_shrink(void)
{
    sj_pool *pool = &sj_zombie_pool;
    if (pool->has_guards != 0) {
        sj_pages_forget_half(pool);
        return;
    }
    empty_freed((atomic_load(&pool->tail) - atomic_load(&pool->head)) / 2, 0);
}

/* The recorder has seen that memory is short. */
static void follow_shrinks(sj_zombie_region *region)
{
    const uint32_t wanted = atomic_load(&region->shrinks_wanted);
    if (atomic_load_explicit(&region->shrinks_done, memory_order_relaxed) != wanted &&
        atomic_exchange(&region->shrinks_done, wanted) != wanted) {
        sj_pool_shrink();
        sj_quarantine_shrink();
    }
}

static bool has_memory(uint64_t bytes)
{
    enum { TRIES = 8 };
    sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    if (region != NULL) {
        follow_shrinks(region);
    }
    uint64_t limit = region != NULL ? (uint64_t)region->settings.memory_kib << 10 : 0;
    /* The content of freed blocks has its part. */
    limit -= sj_zombie_pool.saved_bytes < limit / 2 ? sj_zombie_pool.saved_bytes : limit / 2;
    if (limit < bytes) {
        return false;
    }
    if (sj_zombie_pool.has_guards == 0) {
        empty_freed(TRIES, limit - bytes);
    }
    return atomic_load(&sj_zombie_pool.held_bytes) <= limit - bytes;
}

static bool prepare_room(sj_pool_slot *slot, uint64_t first_page, uint64_t bytes)
{
    const bool has_guards = sj_zombie_pool.has_guards != 0;
    const bool is_new = has_guards && slot->is_prepared == 0;
    if (atomic_exchange(&slot->is_open, 0) != 0 || sj_zombie_pool.was_left != 0 || is_new) {
        if (!sj_pages_close_room(sj_pool_room(slot))) {
            atomic_store(&slot->is_open, 1); /* to be closed the next time */
            return false;
        }
        slot->is_prepared = 1;
    }
    if (has_guards && slot->saved_at != 0 && !sj_pages_is_saved(slot)) {
        COUNT(emptied);
    }
    slot->saved_at = 0;
    empty_room(slot);
    slot->held_bytes = (uint32_t)bytes;
    atomic_fetch_add(&sj_zombie_pool.held_bytes, bytes);
    return sj_pages_open(first_page, bytes);
}

static void fill_margins(const sj_pool_slot *slot, uint64_t page, uint64_t bytes)
{
    memset((void *)(uintptr_t)page, PATTERN, slot->address - page);
    const uint64_t end = slot->address + slot->size;
    memset((void *)(uintptr_t)end, PATTERN, page + bytes - end);
}

/* Most of a page is looked through: by words, but for those at its ends. */
static bool has_pattern(uint64_t low, uint64_t high)
{
    const uint64_t words = UINT64_C(0x0101010101010101) * PATTERN;
    for (; low < high && low % sizeof(words) != 0; low++) {
        if (*(const uint8_t *)(uintptr_t)low != PATTERN) {
            return false;
        }
    }
    for (; high - low >= sizeof(words) && low < high; low += sizeof(words)) {
        if (*(const uint64_t *)(uintptr_t)low != words) {
            return false;
        }
    }
    for (; low < high; low++) {
        if (*(const uint8_t *)(uintptr_t)low != PATTERN) {
            return false;
        }
    }
    return true;
}

static uint64_t bytes_of_pages(const sj_pool_slot *slot)
{
    return ((uint64_t)slot->size + SJ_POOL_PAGE - 1) & ~(uint64_t)(SJ_POOL_PAGE - 1);
}

static void take_trace(sj_zombie_trace *trace, const sj_zombie_trace *here, uint8_t *stack)
{
    *trace = *here;
    trace->ticks = sj_arch_ticks();
    trace->tid = sj_thread_number();
    sj_stack_take(trace, stack, sj_zombie_pool.stack_bytes);
}

/* Where a block lies at the end of its pages. */
static uint64_t address_at_end(uint64_t page, uint64_t pages, size_t bytes, size_t alignment)
{
    const uint64_t rounded = (bytes + SJ_POOL_ALIGNMENT - 1) & ~(uint64_t)(SJ_POOL_ALIGNMENT - 1);
    return (page + pages - rounded) & ~(uint64_t)(alignment - 1);
}

static void *place_block(sj_pool_slot *slot, size_t bytes, size_t alignment, uint32_t families,
                         const sj_zombie_trace *here)
{
    const bool at_end = (sj_arch_ticks() >> 5 & 1) != 0;
    const uint64_t pages = (bytes + SJ_POOL_PAGE - 1) & ~(uint64_t)(SJ_POOL_PAGE - 1);
    const uint64_t data = sj_pool_room(slot) + SJ_POOL_PAGE;
    const uint64_t page = at_end ? data + SJ_POOL_BLOCK_MAX_BYTES - pages : data;
    if (!prepare_room(slot, page, pages)) {
        COUNT(refused_memory);
        put_freed(slot);
        return NULL;
    }
    slot->size = (uint32_t)bytes;
    slot->families = families;
    slot->address = at_end ? address_at_end(page, pages, bytes, alignment) : page;
    fill_margins(slot, page, pages);
    slot->release.ticks = 0;
    slot->object = 0;
    slot->class_name = NULL;
    take_trace(&slot->allocation, here, (uint8_t *)(slot + 1));
    atomic_store(&slot->is_reported, 0);
    atomic_store_explicit(&slot->state, SJ_SLOT_LIVE, memory_order_release);
    COUNT(guarded);
    return (void *)(uintptr_t)slot->address;
}

static void *take_block(size_t bytes, size_t alignment, uint32_t families,
                        const sj_zombie_trace *here)
{
    const uint64_t pages = (bytes + SJ_POOL_PAGE - 1) & ~(uint64_t)(SJ_POOL_PAGE - 1);
    sj_pool_slot *slot = has_memory(pages) ? take_room() : NULL;
    if (slot == NULL) {
        COUNT(refused_room);
        return NULL;
    }
    uint32_t was = atomic_load(&slot->state);
    if (was == SJ_SLOT_RESTORING ||
        !atomic_compare_exchange_strong(&slot->state, &was, SJ_SLOT_UNUSED)) {
        put_freed(slot);
        COUNT(refused_room);
        return NULL;
    }
    return place_block(slot, bytes, alignment, families, here);
}

void sj_pool_count_refused(void)
{
    COUNT(refused_memory);
}

void *sj_pool_take(size_t bytes, size_t alignment, uint32_t families)
{
    sj_zombie_trace here = {0};
    _Atomic uint32_t *live = &sj_custody_now->shared.live;
    if (bytes == 0 || bytes > SJ_POOL_BLOCK_MAX_BYTES || alignment > SJ_POOL_PAGE) {
        COUNT(refused_size);
        return NULL;
    }
    if (!sj_recorder_may_call()) { /* a filter may end the program for our system calls */
        COUNT(refused_memory);
        return NULL;
    }
    const uint64_t start = sj_arch_ticks();
    sj_trace_here(&here);
    atomic_fetch_add(live, 1); /* before: who leaves waits for it, or finds it */
    void *block = take_block(bytes, alignment, families, &here);
    if (block == NULL) {
        atomic_fetch_sub(live, 1);
    }
    sj_objects_count(heap_ticks, sj_arch_ticks() - start);
    return block;
}

static void report_free(sj_pool_slot *slot, sj_zombie_kind kind, uint64_t address,
                        const sj_zombie_trace *here, uint64_t site)
{
    sj_report_follow(sj_report_use(slot, kind, address, true, here, site));
}

/* Bytes around the block that no closed page guards. */
static void check_margins(sj_pool_slot *slot, const sj_zombie_trace *here, uint64_t site)
{
    const uint64_t page = slot->address & ~(uint64_t)(SJ_POOL_PAGE - 1);
    const uint64_t end = slot->address + slot->size;
    if (!has_pattern(end, page + bytes_of_pages(slot))) {
        report_free(slot, SJ_ZOMBIE_OVERFLOW_AT_FREE, end, here, site);
    } else if (!has_pattern(page, slot->address)) {
        report_free(slot, SJ_ZOMBIE_UNDERFLOW_AT_FREE, slot->address - 1, here, site);
    }
}

static const void *freed_class; /* of objects in guarded blocks */

bool sj_zombies_name_object(void *object, const char *class_name, const void *class)
{
    const uint64_t address = (uint64_t)(uintptr_t)object;
    sj_pool_slot *slot =
        sj_custody_now != NULL && sj_pool_has(address) ? sj_pool_find(address) : NULL;
    if (slot == NULL || atomic_load(&slot->state) != SJ_SLOT_LIVE || address < slot->address ||
        address + sizeof(void *) > slot->address + slot->size) {
        return false;
    }
    freed_class = class;
    slot->class_name = class_name;
    slot->object = address;
    return true;
}

/* Its room may be used again as soon as it is in the queue. */
static void close_block(sj_pool_slot *slot, uint64_t page)
{
    const uint64_t bytes = bytes_of_pages(slot);
    sj_pages_save(slot);
    if (!sj_recorder_may_call() || !sj_pages_close(page, bytes)) {
        atomic_store(&slot->is_open, 1);
    } else if (sj_zombie_pool.has_guards != 0) {
        atomic_fetch_sub(&sj_zombie_pool.held_bytes, slot->held_bytes);
        slot->held_bytes = 0;
    }
}

void sj_pool_put(void *block, uint64_t site, uint32_t families)
{
    sj_zombie_trace here = {0};
    const uint64_t address = (uint64_t)(uintptr_t)block;
    sj_pool_slot *slot = sj_pool_find(address);
    uint32_t live = SJ_SLOT_LIVE;
    const uint64_t start = sj_arch_ticks();
    sj_trace_here(&here);
    if (slot == NULL || slot->address != address ||
        !atomic_compare_exchange_strong(&slot->state, &live, SJ_SLOT_FREED)) {
        const bool is_double = slot != NULL && slot->address == address && live >= SJ_SLOT_FREED;
        report_free(slot, is_double ? SJ_ZOMBIE_DOUBLE_FREE : SJ_ZOMBIE_INVALID_FREE, address,
                    &here, site);
        return;
    }
    if ((slot->families & families) == 0) {
        report_free(slot, SJ_ZOMBIE_MISMATCHED_FREE, address, &here, site);
    } else {
        check_margins(slot, &here, site);
    }
    take_trace(&slot->release, &here, (uint8_t *)(slot + 1) + sj_zombie_pool.stack_bytes);
    if (slot->object != 0) {
        *(const void **)(uintptr_t)slot->object = freed_class;
    }
    close_block(slot, address & ~(uint64_t)(SJ_POOL_PAGE - 1));
    COUNT(released);
    put_freed(slot);
    atomic_fetch_sub(&sj_custody_now->shared.live, 1);
    sj_objects_count(heap_ticks, sj_arch_ticks() - start);
}

void sj_pool_open_pages(sj_pool_slot *slot, uint64_t address)
{
    const uint64_t page = address & ~(uint64_t)(SJ_POOL_PAGE - 1);
    if (slot != NULL) {
        atomic_store(&slot->is_open, 1);
    }
    uint32_t freed = SJ_SLOT_FREED;
    const bool owns =
        slot != NULL && atomic_compare_exchange_strong(&slot->state, &freed, SJ_SLOT_RESTORING);
    sj_pages_open_met(page);
    if (owns) {
        sj_pages_restore(slot, page);
        atomic_store(&slot->state, SJ_SLOT_FREED);
    }
}
