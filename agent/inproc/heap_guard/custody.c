#include "agent/inproc/heap_guard/custody.h"

#include "agent/inproc/heap_guard/named_mapping.h"

#include <string.h>

sj_custody *sj_custody_now;

sj_custody *sj_custody_find(void)
{
    sj_custody *found = sj_named_mapping_find(SJ_HEAP_CUSTODY_NAME);
    return found != NULL && found->shared.magic == SJ_HEAP_CUSTODY_MAGIC ? found : NULL;
}

sj_custody *sj_custody_make(void)
{
    size_t bytes = 0;
    const void *code = sj_custodian_code(&bytes);
    uint8_t *mapped = code != NULL && bytes <= SJ_CUSTODY_CODE_BYTES
                          ? sj_named_mapping_make(SJ_HEAP_CUSTODY_NAME, SJ_CUSTODY_DATA_BYTES,
                                                  SJ_CUSTODY_CODE_BYTES)
                          : NULL;
    if (mapped == NULL) {
        return NULL;
    }
    memcpy(mapped + SJ_CUSTODY_DATA_BYTES, code, bytes);
    if (!sj_named_mapping_seal(mapped, SJ_CUSTODY_DATA_BYTES, SJ_CUSTODY_CODE_BYTES)) {
        return NULL;
    }
    sj_custody *custody = (sj_custody *)(void *)mapped;
    custody->shared.magic = SJ_HEAP_CUSTODY_MAGIC;
    custody->shared.version = SJ_HEAP_CUSTODY_VERSION;
    return custody;
}

void sj_custody_take_over(sj_custody *custody)
{
    const uint64_t code = (uint64_t)(uintptr_t)custody + SJ_CUSTODY_DATA_BYTES;
    for (uint32_t head = SJ_HEAD_FREE; head < SJ_HEAD_SIGACTION; head++) {
        custody->goes_to[head] = code + sj_custodian_offset((sj_zombie_head)head);
    }
    for (uint32_t head = SJ_HEAD_SIGACTION; head < SJ_HEADS; head++) {
        custody->goes_to[head] = custody->originals[head];
    }
    /* Not even by an agent whose quarantine or counting was begun and never ended. */
    for (uint32_t head = 0; head < SJ_HEADS; head++) {
        atomic_store(&custody->keeps_by[head], 0);
        atomic_store(&custody->counts_by[head], 0);
    }
}
