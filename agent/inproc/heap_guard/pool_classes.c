#include "agent/inproc/heap_guard/internal.h"

uint64_t sj_pool_size_classes(sj_pool *pool, uint32_t slots)
{
    /* Bytes of the largest block, and how many small blocks there are for one of this class. */
    static const struct {
        uint32_t block_bytes;
        uint32_t rarity;
    } sizes[SJ_POOL_CLASSES] = {
        {SJ_POOL_SMALL_BYTES, 1}, {128 << 10, 16}, {SJ_POOL_BLOCK_MAX_BYTES, 64}};
    enum { LEAST_SLOTS = 4 };
    uint64_t offset = 0;
    pool->slots = 0;
    for (uint32_t i = 0; i < SJ_POOL_CLASSES; i++) {
        sj_pool_class *class = &pool->classes[i];
        const uint32_t share = slots / sizes[i].rarity;
        class->slots = share > LEAST_SLOTS ? share : LEAST_SLOTS;
        class->slot_bytes = (uint32_t)(sj_page_round_up(sizes[i].block_bytes) + sj_page_bytes());
        class->start = offset;
        class->first = pool->slots;
        offset += (uint64_t) class->slots * class->slot_bytes;
        pool->slots += class->slots;
    }
    return offset;
}

void sj_pool_place_classes(sj_pool *pool)
{
    for (uint32_t i = 0; i < SJ_POOL_CLASSES; i++) {
        pool->classes[i].start += pool->base;
    }
}
