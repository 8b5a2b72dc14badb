/* Design notes
 *
 * After the agent was unloaded, a copy of this code runs. It lies directly after the residue's
 * data. It calls only malloc, by its address in the residue, and refers only to itself and to the
 * residue's data. The linker defines __start_NAME and __stop_NAME for a section whose name is a C
 * identifier. */
#include "agent/inproc/heap_guard/internal.h"

#include "agent/inproc/recorder/sys.h"

#define IN_COPY __attribute__((section("sj_residue_code_section"), noinline, used))

extern const char __start_sj_residue_code_section[] __attribute__((visibility("hidden")));
extern const char __stop_sj_residue_code_section[] __attribute__((visibility("hidden")));

static inline __attribute__((always_inline)) sj_residue *residue_here(void)
{
    const char *code;
    __asm__("lea __start_sj_residue_code_section(%%rip), %0" : "=r"(code));
    return (sj_residue *)(uintptr_t)(code - SJ_RESIDUE_DATA_BYTES);
}

static inline __attribute__((always_inline)) sj_pool_slot *slot_of(const sj_residue *residue,
                                                                   uint64_t block)
{
    const sj_pool *pool = &residue->pool;
    const sj_pool_class *class = sj_pool_class_at(pool, block);
    if (class == NULL) {
        return NULL;
    }
    const uint64_t index = class->first + (block - class->start) / class->slot_bytes;
    const uint64_t record = sizeof(sj_pool_slot) + 2 * (uint64_t)pool->stack_bytes;
    sj_pool_slot *slot = (sj_pool_slot *)(pool->records + index * record);
    return slot->address == block ? slot : NULL;
}

/* Ignores a second free and an address that is not a block, because no agent could report it. */
IN_COPY static void free_block(uint64_t block)
{
    sj_residue *residue = residue_here();
    sj_pool_slot *slot = slot_of(residue, block);
    uint32_t live = SJ_SLOT_LIVE;
    if (slot != NULL && atomic_compare_exchange_strong(&slot->state, &live, SJ_SLOT_UNUSED)) {
        const uint64_t page = block & ~(uint64_t)(SJ_PAGE_MOST_BYTES - 1);
        const uint64_t bytes = slot->size + (block - page);
        (void)SJ_SYS(SYS_madvise, page, bytes, MADV_DONTNEED, 0, 0, 0);
        atomic_fetch_sub(&residue->pool.held_bytes, slot->held_bytes);
        slot->held_bytes = 0;
        atomic_fetch_sub(&residue->shared.live, 1);
    }
}

IN_COPY static uint64_t usable_size(uint64_t block)
{
    const sj_pool_slot *slot = slot_of(residue_here(), block);
    return slot != NULL ? slot->size : 0;
}

IN_COPY static void *resize(uint64_t block, uint64_t bytes)
{
    const sj_residue *residue = residue_here();
    const uint64_t held = usable_size(block);
    if (bytes == 0) {
        free_block(block);
        return NULL;
    }
    void *moved = ((void *(*)(uint64_t))residue->new_block)(bytes);
    if (moved != NULL) {
        void *to = moved;
        uint64_t from = block;
        uint64_t count = held < bytes ? held : bytes;
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
        free_block(block);
    }
    return moved;
}

const void *sj_residue_code(size_t *bytes)
{
    *bytes = (size_t)(__stop_sj_residue_code_section - __start_sj_residue_code_section);
    return __start_sj_residue_code_section;
}

uint64_t sj_residue_code_offset(sj_heap_entry entry)
{
    const uint64_t start = (uint64_t)(uintptr_t)__start_sj_residue_code_section;
    switch (entry) {
    case SJ_ENTRY_REALLOC:
    case SJ_ENTRY_RALLOCX:
        return (uint64_t)(uintptr_t)resize - start;
    case SJ_ENTRY_USABLE_SIZE:
    case SJ_ENTRY_XALLOCX: /* Returns the unchanged size: the block was not resized. */
    case SJ_ENTRY_SALLOCX:
        return (uint64_t)(uintptr_t)usable_size - start;
    default:
        return (uint64_t)(uintptr_t)free_block - start;
    }
}
