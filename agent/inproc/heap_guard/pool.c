/* Design notes
 *
 * The slots of a class have one size: a closed guard page, then data pages. One more closed page
 * follows the last slot of the last class. A class has its own queue of freed slots. A block lies
 * at the end of its pages, or at their beginning if the policy says so, so that an access beyond
 * this end meets a closed page. The rest of its pages has a pattern. Each call that gets the block
 * as an argument checks the pattern. Freed slots wait in a queue, first in, first out, so that a
 * freed block is watched for as long as possible. If a thread is stopped between claiming an
 * element of the queue and emptying it, the next slot that would be stored in this element is lost:
 * it is never used again. */
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
    sj_pool *pool = &sj_heap_pool;
    return (sj_pool_slot *)(pool->records + (uint64_t)index * record_bytes(pool));
}

static uint32_t index_of(const sj_pool_slot *slot)
{
    const sj_pool *pool = &sj_heap_pool;
    return (uint32_t)((uint64_t)((const uint8_t *)slot - pool->records) / record_bytes(pool));
}

static sj_pool_class *class_of(const sj_pool_slot *slot)
{
    sj_pool *pool = &sj_heap_pool;
    const uint32_t index = index_of(slot);
    uint32_t class = SJ_POOL_CLASSES - 1;
    while (index < pool->classes[class].first) {
        class --;
    }
    return &pool->classes[class];
}

uint64_t sj_pool_slot_start(const sj_pool_slot *slot)
{
    const sj_pool_class *class = class_of(slot);
    return class->start + (uint64_t)(index_of(slot) - class->first) * class->slot_bytes;
}

uint64_t sj_pool_slot_end(const sj_pool_slot *slot)
{
    return sj_pool_slot_start(slot) + class_of(slot)->slot_bytes;
}

sj_pool_slot *sj_pool_find(uint64_t address)
{
    const sj_pool_class *class = sj_pool_class_at(&sj_heap_pool, address);
    return class != NULL ? sj_pool_slot_at(class->first +
                                           (uint32_t)((address - class->start) / class->slot_bytes))
                         : NULL;
}

static uint32_t round_to_power(uint64_t bytes)
{
    uint32_t shift = 0;
    while ((UINT64_C(1) << shift) < bytes) {
        shift++;
    }
    return shift;
}

static bool make_queue(sj_pool_class *class)
{
    const uint32_t queue_shift = round_to_power((uint64_t) class->slots * 2);
    class->queue_mask = (UINT32_C(1) << queue_shift) - 1;
    class->queue = sj_sys_allocate(sizeof(uint32_t) << queue_shift);
    return class->queue != NULL;
}

bool sj_pool_init(const sj_zombie_settings *settings)
{
    sj_pool *pool = &sj_heap_pool;
    pool->stack_bytes = settings->stack_bytes & ~(uint32_t)(SJ_POOL_ALIGNMENT - 1);
    if (!sj_pages_map_pool(pool, settings->slots, (uint64_t)settings->memory_kib << 10)) {
        return false;
    }
    pool->records =
        sj_sys_map(NULL, (uint64_t)pool->slots * record_bytes(pool), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bool has_queues = true;
    for (uint32_t i = 0; i < SJ_POOL_CLASSES; i++) {
        has_queues = has_queues && make_queue(&pool->classes[i]);
    }
    if (sj_sys_failed(pool->records) || !has_queues) {
        return false; /* The few mapped bytes stay mapped. */
    }
    sj_residue_now->shared.pool_bytes = UINT64_C(1) << pool->shift;
    return true;
}

static bool is_live(uint32_t index)
{
    return atomic_load(&sj_pool_slot_at(index)->state) == SJ_SLOT_LIVE;
}

/* Releases the memory of adjacent slots of a class with one system call. */
static void release_slots(const sj_pool_class *class, uint32_t first, uint32_t end)
{
    if (first < end) {
        (void)SJ_SYS(SYS_madvise, sj_pool_slot_start(sj_pool_slot_at(first)),
                     (uint64_t)(end - first) * class->slot_bytes, MADV_DONTNEED, 0, 0, 0);
    }
}

static void release_class(sj_pool_class *class)
{
    sj_pool *pool = &sj_heap_pool;
    uint32_t first = class->first;
    const uint32_t end = class->first + atomic_load(&class->fresh);
    for (uint32_t i = first; i < end; i++) {
        if (is_live(i)) {
            release_slots(class, first, i);
            first = i + 1;
        } else {
            atomic_store(&sj_pool_slot_at(i)->state, SJ_SLOT_UNUSED);
            atomic_fetch_sub(&pool->held_bytes, sj_pool_slot_at(i)->held_bytes);
            sj_pool_slot_at(i)->held_bytes = 0;
        }
    }
    release_slots(class, first, end);
}

void sj_pool_detach(void)
{
    sj_pool *pool = &sj_heap_pool;
    sj_pages_open_all(pool);
    for (uint32_t i = 0; i < SJ_POOL_CLASSES; i++) {
        release_class(&pool->classes[i]);
    }
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

static sj_pool_slot *claim_freed_slot(sj_pool_class *class)
{
    uint32_t head = atomic_load(&class->head);
    while (head != atomic_load(&class->tail)) {
        _Atomic uint32_t *cell = &class->queue[head & class->queue_mask];
        if (atomic_load(cell) == 0) {
            return NULL; /* Another thread is about to fill it. */
        }
        if (atomic_compare_exchange_strong(&class->head, &head, head + 1)) {
            const uint32_t held = atomic_exchange(cell, 0);
            return held != 0 ? sj_pool_slot_at(held - 1) : NULL;
        }
    }
    return NULL;
}

static void queue_slot(const sj_pool_slot *slot)
{
    sj_pool_class *class = class_of(slot);
    uint32_t empty = 0;
    const uint32_t tail = atomic_fetch_add(&class->tail, 1);
    (void)atomic_compare_exchange_strong(&class->queue[tail & class->queue_mask], &empty,
                                         index_of(slot) + 1);
}

/* True if so many freed blocks wait that the oldest one's slot is reused before others are touched:
 * a program with few live blocks then needs few pages for their records. */
static bool has_enough_freed(const sj_pool_class *class)
{
    const sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    const uint64_t wanted = region != NULL ? region->settings.freed_slots : 0;
    return wanted != 0 && atomic_load(&class->tail) - atomic_load(&class->head) >
                              wanted * class->slots / sj_heap_pool.classes[0].slots;
}

bool sj_pool_spares_blocks(uint32_t random)
{
    const uint32_t live = atomic_load(&sj_residue_now->shared.live);
    const uint32_t slots = sj_heap_pool.classes[0].slots;
    const uint32_t last = slots / 16;
    const uint32_t left = live < slots ? slots - live : 0;
    /* `live` also counts large blocks, so small slots may be unused even if `left` is 0. */
    return left != 0 && left < last && random % last >= left;
}

/* Reuses slots in the order of the frees, after each was used once or enough freed blocks wait. */
static sj_pool_slot *claim_slot(sj_pool_class *class)
{
    if (has_enough_freed(class)) {
        sj_pool_slot *oldest = claim_freed_slot(class);
        if (oldest != NULL) {
            COUNT(evicted);
            return oldest;
        }
    }
    uint32_t fresh = atomic_load(&class->fresh);
    while (fresh < class->slots) {
        if (atomic_compare_exchange_strong(&class->fresh, &fresh, fresh + 1)) {
            return sj_pool_slot_at(class->first + fresh);
        }
    }
    sj_pool_slot *slot = claim_freed_slot(class);
    if (slot != NULL) {
        COUNT(evicted);
    }
    return slot;
}

static void resume_class(sj_pool_class *class)
{
    const uint32_t end = class->first + atomic_load(&class->fresh);
    memset(class->queue, 0, ((uint64_t) class->queue_mask + 1) * sizeof(*class->queue));
    atomic_store(&class->head, 0);
    atomic_store(&class->tail, 0);
    for (uint32_t i = class->first; i < end; i++) {
        if (!is_live(i)) {
            queue_slot(sj_pool_slot_at(i));
        }
    }
}

void sj_pool_resume(void)
{
    for (uint32_t i = 0; i < SJ_POOL_CLASSES; i++) {
        resume_class(&sj_heap_pool.classes[i]);
    }
}

/* Drops the saved content of a slot's block. The calling thread owns the slot. */
static void drop_content(sj_pool_slot *slot)
{
    if (slot->held_bytes != 0) {
        (void)SJ_SYS(SYS_madvise, sj_pool_slot_start(slot) + sj_page_bytes(),
                     class_of(slot)->slot_bytes - sj_page_bytes(), MADV_DONTNEED, 0, 0, 0);
        atomic_fetch_sub(&sj_heap_pool.held_bytes, slot->held_bytes);
        slot->held_bytes = 0;
    }
}

/* Drops the content of the oldest freed blocks of a class until `limit_bytes` are held in all, or
 * of `most` blocks. Their pages stay closed. If the program continues after a use of such a block,
 * it reads zeros. */
static void drop_freed_content(sj_pool_class *class, uint32_t most, uint64_t limit_bytes)
{
    for (uint32_t i = 0; i < most && atomic_load(&sj_heap_pool.held_bytes) > limit_bytes; i++) {
        sj_pool_slot *slot = claim_freed_slot(class);
        if (slot == NULL) {
            return;
        }
        if (slot->held_bytes != 0) {
            COUNT(emptied);
        }
        drop_content(slot);
        queue_slot(slot);
    }
}

void sj_pool_shrink(void)
{
    sj_pool *pool = &sj_heap_pool;
    if (pool->has_guards != 0) {
        sj_pages_forget_half(pool);
        return;
    }
    for (uint32_t i = 0; i < SJ_POOL_CLASSES; i++) {
        sj_pool_class *class = &pool->classes[i];
        drop_freed_content(class, (atomic_load(&class->tail) - atomic_load(&class->head)) / 2, 0);
    }
}

/* Drops content if the recorder has found that memory is short. */
static void shrink_on_request(sj_zombie_region *region)
{
    const uint32_t wanted = atomic_load(&region->shrinks_wanted);
    if (atomic_load_explicit(&region->shrinks_done, memory_order_relaxed) != wanted &&
        atomic_exchange(&region->shrinks_done, wanted) != wanted) {
        sj_pool_shrink();
        sj_delayed_free_shrink();
    }
}

static bool has_memory(uint64_t bytes)
{
    enum { TRIES = 8 };
    sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    if (region != NULL) {
        shrink_on_request(region);
    }
    uint64_t limit = region != NULL ? (uint64_t)region->settings.memory_kib << 10 : 0;
    /* Reserves part of the budget for the saved content of freed blocks. */
    limit -= sj_heap_pool.saved_bytes < limit / 2 ? sj_heap_pool.saved_bytes : limit / 2;
    if (limit < bytes) {
        return false;
    }
    for (uint32_t i = SJ_POOL_CLASSES; sj_heap_pool.has_guards == 0 && i-- > 0;) {
        drop_freed_content(&sj_heap_pool.classes[i], TRIES, limit - bytes);
    }
    return atomic_load(&sj_heap_pool.held_bytes) <= limit - bytes;
}

/* Closes the page after a slot again if the program may have opened it. */
static bool close_page_after(const sj_pool_slot *slot)
{
    const uint64_t after = sj_pool_slot_end(slot);
    const sj_pool_slot *next = sj_pool_find(after);
    const bool was_opened =
        sj_heap_pool.was_left != 0 || next == NULL || atomic_load(&next->is_open) != 0;
    return !was_opened || sj_pages_close(after, sj_page_bytes());
}

static bool prepare_pages(sj_pool_slot *slot, uint64_t first_page, uint64_t bytes)
{
    const bool has_guards = sj_heap_pool.has_guards != 0;
    const bool is_new = has_guards && slot->is_prepared == 0;
    if (atomic_exchange(&slot->is_open, 0) != 0 || sj_heap_pool.was_left != 0 || is_new) {
        /* The page after the slot is the next slot's guard page, or closed for ever. */
        if (!sj_pages_close_slot(sj_pool_slot_start(slot), class_of(slot)->slot_bytes) ||
            !close_page_after(slot)) {
            atomic_store(&slot->is_open, 1); /* Close it before its next use. */
            return false;
        }
        slot->is_prepared = 1;
    }
    if (has_guards && slot->saved_at != 0 && !sj_pages_is_saved(slot)) {
        COUNT(emptied);
    }
    slot->saved_at = 0;
    drop_content(slot);
    slot->held_bytes = (uint32_t)bytes;
    atomic_fetch_add(&sj_heap_pool.held_bytes, bytes);
    return sj_pages_open(first_page, bytes);
}

static void fill_margins(const sj_pool_slot *slot, uint64_t page, uint64_t bytes)
{
    memset((void *)(uintptr_t)page, PATTERN, slot->address - page);
    const uint64_t end = slot->address + slot->size;
    memset((void *)(uintptr_t)end, PATTERN, page + bytes - end);
}

/* Compares bytes up to the first aligned word, then words, then the last bytes. */
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
    return sj_page_round_up(slot->size);
}

static void record_trace(sj_zombie_trace *trace, const sj_zombie_trace *here, uint8_t *stack)
{
    *trace = *here;
    trace->ticks = sj_arch_ticks();
    trace->tid = sj_thread_number();
    sj_stack_copy_own(trace, stack, sj_heap_pool.stack_bytes);
}

/* Returns the address of a block at the end of its pages. */
static uint64_t address_at_end(uint64_t page, uint64_t pages, size_t bytes, size_t alignment)
{
    const uint64_t rounded_bytes =
        (bytes + SJ_POOL_ALIGNMENT - 1) & ~(uint64_t)(SJ_POOL_ALIGNMENT - 1);
    return (page + pages - rounded_bytes) & ~(uint64_t)(alignment - 1);
}

/* True if the next block lies at the end of its pages. If the policy wants both ends, they follow
 * the Thue-Morse sequence. It does not repeat itself, so an allocation in a loop gets both ends,
 * whatever the loop's pattern. */
static bool is_next_at_end(void)
{
    static _Atomic uint32_t turn;
    const sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    const uint32_t align = region != NULL ? region->settings.align : SJ_ZOMBIE_ALIGN_END;
    return align == SJ_ZOMBIE_ALIGN_BOTH ? (__builtin_popcount(atomic_fetch_add(&turn, 1)) & 1) == 0
                                         : align == SJ_ZOMBIE_ALIGN_END;
}

static void *place_block(sj_pool_slot *slot, size_t bytes, size_t alignment, uint32_t families,
                         const sj_zombie_trace *here)
{
    const bool at_end = is_next_at_end();
    const uint64_t pages = sj_page_round_up(bytes);
    const uint64_t page =
        at_end ? sj_pool_slot_end(slot) - pages : sj_pool_slot_start(slot) + sj_page_bytes();
    if (!prepare_pages(slot, page, pages)) {
        COUNT(refused_memory);
        queue_slot(slot);
        return NULL;
    }
    slot->size = (uint32_t)bytes;
    slot->families = families;
    slot->address = at_end ? address_at_end(page, pages, bytes, alignment) : page;
    fill_margins(slot, page, pages);
    slot->release.ticks = 0;
    slot->object = 0;
    slot->class_name = NULL;
    record_trace(&slot->allocation, here, (uint8_t *)(slot + 1));
    atomic_store(&slot->is_reported, 0);
    atomic_store_explicit(&slot->state, SJ_SLOT_LIVE, memory_order_release);
    COUNT(guarded);
    return (void *)(uintptr_t)slot->address;
}

/* Returns the class with the smallest slots that hold a block of at most
 * SJ_POOL_BLOCK_MAX_BYTES. */
static sj_pool_class *class_for(size_t bytes)
{
    sj_pool_class *class = sj_heap_pool.classes;
    while (bytes > class->slot_bytes - sj_page_bytes()) {
        class ++;
    }
    return class;
}

static void *place_in_free_slot(size_t bytes, size_t alignment, uint32_t families,
                                const sj_zombie_trace *here)
{
    const uint64_t pages = sj_page_round_up(bytes);
    if (!has_memory(pages)) {
        COUNT(refused_limit);
        return NULL;
    }
    sj_pool_slot *slot = claim_slot(class_for(bytes));
    if (slot == NULL) {
        COUNT(refused_full);
        return NULL;
    }
    uint32_t old_state = atomic_load(&slot->state);
    if (old_state == SJ_SLOT_RESTORING ||
        !atomic_compare_exchange_strong(&slot->state, &old_state, SJ_SLOT_UNUSED)) {
        queue_slot(slot);
        COUNT(refused_full);
        return NULL;
    }
    return place_block(slot, bytes, alignment, families, here);
}

void sj_pool_count_refused(void)
{
    COUNT(refused_memory);
}

void *sj_pool_allocate(size_t bytes, size_t alignment, uint32_t families)
{
    sj_zombie_trace here = {0};
    _Atomic uint32_t *live = &sj_residue_now->shared.live;
    if (bytes == 0 || bytes > SJ_POOL_BLOCK_MAX_BYTES || alignment > sj_page_bytes()) {
        COUNT(refused_size);
        return NULL;
    }
    /* A seccomp filter might end the program because of our system calls. */
    if (!sj_recorder_may_call()) {
        COUNT(refused_memory);
        return NULL;
    }
    const uint64_t start = sj_arch_ticks();
    sj_trace_here(&here);
    /* Count the block before it exists: a detaching tracer waits until this count is zero. */
    atomic_fetch_add(live, 1);
    void *block = place_in_free_slot(bytes, alignment, families, &here);
    if (block == NULL) {
        atomic_fetch_sub(live, 1);
    }
    sj_objects_count(heap_ticks, sj_arch_ticks() - start);
    return block;
}

static void report_free(sj_pool_slot *slot, sj_zombie_kind kind, uint64_t address,
                        const sj_zombie_trace *here, uint64_t site)
{
    sj_report_stop_if(sj_report_use(slot, kind, address, true, here, site));
}

/* Checks the bytes around the block that no closed page guards. `is_free` is true if the block is
 * being freed, and false if a call gets it as an argument. */
static void check_margins(sj_pool_slot *slot, bool is_free, const sj_zombie_trace *here,
                          uint64_t site)
{
    const uint64_t page = sj_page_start(slot->address);
    const uint64_t end = slot->address + slot->size;
    if (!has_pattern(end, page + bytes_of_pages(slot))) {
        report_free(slot, is_free ? SJ_ZOMBIE_OVERFLOW_AT_FREE : SJ_ZOMBIE_OVERFLOW_AT_CALL, end,
                    here, site);
    } else if (!has_pattern(page, slot->address)) {
        report_free(slot, is_free ? SJ_ZOMBIE_UNDERFLOW_AT_FREE : SJ_ZOMBIE_UNDERFLOW_AT_CALL,
                    slot->address - 1, here, site);
    }
}

void sj_pool_check(sj_pool_slot *slot, uint64_t site)
{
    sj_zombie_trace here = {0};
    if (atomic_load(&slot->state) == SJ_SLOT_LIVE && atomic_load(&slot->is_reported) == 0) {
        sj_trace_here(&here);
        check_margins(slot, false, &here, site);
    }
}

static const void *freed_class; /* Class that freed objects in guarded blocks get. */

bool sj_guard_name_object(void *object, const char *class_name, const void *class)
{
    const uint64_t address = (uint64_t)(uintptr_t)object;
    sj_pool_slot *slot =
        sj_residue_now != NULL && sj_pool_has(address) ? sj_pool_find(address) : NULL;
    if (slot == NULL || atomic_load(&slot->state) != SJ_SLOT_LIVE || address < slot->address ||
        address + sizeof(void *) > slot->address + slot->size) {
        return false;
    }
    freed_class = class;
    slot->class_name = class_name;
    slot->object = address;
    return true;
}

/* Makes a freed block inaccessible, or leaves it open if that is not possible. Call it before the
 * slot is in the queue, because another thread may reuse the slot from then on. */
static void close_block(sj_pool_slot *slot, uint64_t page)
{
    const uint64_t bytes = bytes_of_pages(slot);
    sj_pages_save(slot);
    if (!sj_recorder_may_call() || !sj_pages_close(page, bytes)) {
        atomic_store(&slot->is_open, 1);
    } else if (sj_heap_pool.has_guards != 0) {
        atomic_fetch_sub(&sj_heap_pool.held_bytes, slot->held_bytes);
        slot->held_bytes = 0;
    }
}

void sj_pool_free(void *block, uint64_t site, uint32_t families)
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
        check_margins(slot, true, &here, site);
    }
    record_trace(&slot->release, &here, (uint8_t *)(slot + 1) + sj_heap_pool.stack_bytes);
    if (slot->object != 0) {
        *(const void **)(uintptr_t)slot->object = freed_class;
    }
    close_block(slot, sj_page_start(address));
    COUNT(released);
    queue_slot(slot);
    atomic_fetch_sub(&sj_residue_now->shared.live, 1);
    sj_objects_count(heap_ticks, sj_arch_ticks() - start);
}

void sj_pool_open_pages(sj_pool_slot *slot, uint64_t address)
{
    const uint64_t page = sj_page_start(address);
    if (slot != NULL) {
        atomic_store(&slot->is_open, 1);
    }
    /* A guard page also belongs to the slot before it. */
    sj_pool_slot *before = page > sj_heap_pool.base ? sj_pool_find(page - sj_page_bytes()) : NULL;
    if (before != NULL && before != slot) {
        atomic_store(&before->is_open, 1);
    }
    uint32_t freed = SJ_SLOT_FREED;
    const bool owns =
        slot != NULL && atomic_compare_exchange_strong(&slot->state, &freed, SJ_SLOT_RESTORING);
    sj_pages_open_touched(page);
    if (owns) {
        sj_pages_restore(slot, page);
        atomic_store(&slot->state, SJ_SLOT_FREED);
    }
}
