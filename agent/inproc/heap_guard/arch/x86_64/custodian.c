/* Design notes
 *
 * This code runs as a copy, behind the custody's data, after the agent has been unloaded: it calls
 * nothing but malloc, through the custody, and refers to nothing but itself and the data in front
 * of the copy. Sections named like an identifier have symbols at their ends. */
#include "agent/inproc/heap_guard/internal.h"

#include "agent/inproc/recorder/sys.h"

#define IN_COPY __attribute__((section("sj_custodian"), noinline, used))

extern const char __start_sj_custodian[] __attribute__((visibility("hidden")));
extern const char __stop_sj_custodian[] __attribute__((visibility("hidden")));

static inline __attribute__((always_inline)) sj_custody *custody_here(void)
{
    const char *code;
    __asm__("lea __start_sj_custodian(%%rip), %0" : "=r"(code));
    return (sj_custody *)(uintptr_t)(code - SJ_CUSTODY_DATA_BYTES);
}

static inline __attribute__((always_inline)) sj_pool_slot *slot_of(const sj_custody *custody,
                                                                   uint64_t block)
{
    const sj_pool *pool = &custody->pool;
    const uint64_t index = (block - pool->base) / SJ_POOL_ROOM_BYTES;
    const uint64_t record = sizeof(sj_pool_slot) + 2 * (uint64_t)pool->stack_bytes;
    sj_pool_slot *slot = (sj_pool_slot *)(pool->records + index * record);
    return index < pool->slots && slot->address == block ? slot : NULL;
}

/* Not twice, and not what is no block: without the agent nobody reports it. */
IN_COPY static void take_back(uint64_t block)
{
    sj_custody *custody = custody_here();
    sj_pool_slot *slot = slot_of(custody, block);
    uint32_t live = SJ_SLOT_LIVE;
    if (slot != NULL && atomic_compare_exchange_strong(&slot->state, &live, SJ_SLOT_UNUSED)) {
        const uint64_t page = block & ~(uint64_t)(SJ_POOL_PAGE - 1);
        const uint64_t bytes = slot->size + (block - page);
        (void)SJ_SYS(SYS_madvise, page, bytes, MADV_DONTNEED, 0, 0, 0);
        atomic_fetch_sub(&custody->pool.held_bytes, slot->held_bytes);
        slot->held_bytes = 0;
        atomic_fetch_sub(&custody->shared.live, 1);
    }
}

IN_COPY static uint64_t usable_size(uint64_t block)
{
    const sj_pool_slot *slot = slot_of(custody_here(), block);
    return slot != NULL ? slot->size : 0;
}

IN_COPY static void *resize(uint64_t block, uint64_t bytes)
{
    const sj_custody *custody = custody_here();
    const uint64_t held = usable_size(block);
    if (bytes == 0) {
        take_back(block);
        return NULL;
    }
    void *moved = ((void *(*)(uint64_t))custody->new_block)(bytes);
    if (moved != NULL) {
        void *to = moved;
        uint64_t from = block;
        uint64_t count = held < bytes ? held : bytes;
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
        take_back(block);
    }
    return moved;
}

const void *sj_custodian_code(size_t *bytes)
{
    *bytes = (size_t)(__stop_sj_custodian - __start_sj_custodian);
    return __start_sj_custodian;
}

uint64_t sj_custodian_offset(sj_zombie_head head)
{
    const uint64_t start = (uint64_t)(uintptr_t)__start_sj_custodian;
    switch (head) {
    case SJ_HEAD_REALLOC:
    case SJ_HEAD_RALLOCX:
        return (uint64_t)(uintptr_t)resize - start;
    case SJ_HEAD_USABLE_SIZE:
    case SJ_HEAD_XALLOCX: /* as large as before */
    case SJ_HEAD_SALLOCX:
        return (uint64_t)(uintptr_t)usable_size - start;
    default:
        return (uint64_t)(uintptr_t)take_back - start;
    }
}
