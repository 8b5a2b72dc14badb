#include "agent/zombies/zombie_capacity.h"

#include "agent/abi/page.h"

enum {
    MIN_SLOTS = 4096,
    MAX_SLOTS = 131072,
    FREE_PARTS = 16,
    FREED_PARTS = 8,
    RECORD_BYTES = 512, /* The record of a block, without its two stacks. */
    MIN_MEMORY_KIB = 64 << 10
};

static uint32_t page_kib(void)
{
    return (uint32_t)(sj_page_bytes() >> 10);
}

static uint32_t clamp_slots(uint64_t slots)
{
    return slots < MIN_SLOTS ? MIN_SLOTS : slots > MAX_SLOTS ? MAX_SLOTS : (uint32_t)slots;
}

static uint32_t slots_for(const sj_zombie_settings *settings, uint64_t free_bytes)
{
    const uint64_t slot_bytes =
        sj_page_bytes() + RECORD_BYTES + 2 * (uint64_t)settings->stack_bytes;
    return clamp_slots(settings->memory_kib != 0 ? settings->memory_kib / page_kib()
                                                 : free_bytes / FREE_PARTS / slot_bytes);
}

void sj_zombie_capacity_choose(sj_zombie_settings *settings, uint64_t free_bytes)
{
    if (settings->slots == 0) {
        settings->slots = slots_for(settings, free_bytes);
        const uint32_t freed = settings->slots / FREED_PARTS;
        settings->freed_slots = freed > MIN_SLOTS ? freed : MIN_SLOTS;
    }
    if (settings->memory_kib == 0) {
        /* A block has its page, and a share of the ring for contents of freed blocks, which uses up
         * to a quarter of the memory (agent/inproc/heap_guard/pages.c). */
        const uint64_t kib = (uint64_t)settings->slots * page_kib() * 3 / 2;
        settings->memory_kib = kib > MIN_MEMORY_KIB ? (uint32_t)kib : MIN_MEMORY_KIB;
    }
}
