#include "agent/zombies/zombie_capacity.h"

enum {
    SLOTS_LEAST = 4096,
    SLOTS_MOST = 131072,
    FREE_PARTS = 16,
    FREED_PARTS = 8,
    PAGE_BYTES = 4096,
    PAGE_KIB = 4,
    RECORD_BYTES = 512, /* The record of a block, without its two stacks. */
    /* A page of a block, and its part of the ring for the content of freed blocks: up to a quarter
     * of all memory (agent/inproc/heap_guard/pages.c). */
    SLOT_KIB = 6,
    MEMORY_LEAST_KIB = 64 << 10
};

static uint32_t within(uint64_t slots)
{
    return slots < SLOTS_LEAST ? SLOTS_LEAST : slots > SLOTS_MOST ? SLOTS_MOST : (uint32_t)slots;
}

static uint32_t slots_for(const sj_zombie_settings *settings, uint64_t free_bytes)
{
    const uint64_t slot_bytes = PAGE_BYTES + RECORD_BYTES + 2 * (uint64_t)settings->stack_bytes;
    return within(settings->memory_kib != 0 ? settings->memory_kib / PAGE_KIB
                                            : free_bytes / FREE_PARTS / slot_bytes);
}

void sj_zombie_capacity_choose(sj_zombie_settings *settings, uint64_t free_bytes)
{
    if (settings->slots == 0) {
        settings->slots = slots_for(settings, free_bytes);
        const uint32_t freed = settings->slots / FREED_PARTS;
        settings->freed_slots = freed > SLOTS_LEAST ? freed : SLOTS_LEAST;
    }
    if (settings->memory_kib == 0) {
        const uint64_t kib = (uint64_t)settings->slots * SLOT_KIB;
        settings->memory_kib = kib > MEMORY_LEAST_KIB ? (uint32_t)kib : MEMORY_LEAST_KIB;
    }
}
