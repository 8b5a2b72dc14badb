#include "agent/inproc/heap_guard/residue.h"

#include "agent/inproc/heap_guard/named_mapping.h"

#include <string.h>

sj_residue *sj_residue_now;

sj_residue *sj_residue_find(void)
{
    sj_residue *found = sj_named_mapping_find(SJ_HEAP_RESIDUE_NAME);
    return found != NULL && found->shared.magic == SJ_HEAP_RESIDUE_MAGIC ? found : NULL;
}

sj_residue *sj_residue_new(void)
{
    size_t bytes = 0;
    const void *code = sj_residue_code(&bytes);
    uint8_t *mapped = code != NULL && bytes <= SJ_RESIDUE_CODE_BYTES
                          ? sj_named_mapping_new(SJ_HEAP_RESIDUE_NAME, SJ_RESIDUE_DATA_BYTES,
                                                 SJ_RESIDUE_CODE_BYTES)
                          : NULL;
    if (mapped == NULL) {
        return NULL;
    }
    memcpy(mapped + SJ_RESIDUE_DATA_BYTES, code, bytes);
    if (!sj_named_mapping_seal(mapped, SJ_RESIDUE_DATA_BYTES, SJ_RESIDUE_CODE_BYTES)) {
        return NULL;
    }
    sj_residue *residue = (sj_residue *)(void *)mapped;
    residue->shared.magic = SJ_HEAP_RESIDUE_MAGIC;
    residue->shared.version = SJ_HEAP_RESIDUE_VERSION;
    return residue;
}

void sj_residue_point_at_own_code(sj_residue *residue)
{
    const uint64_t code = (uint64_t)(uintptr_t)residue + SJ_RESIDUE_DATA_BYTES;
    for (uint32_t entry = SJ_ENTRY_FREE; entry < SJ_ENTRY_SIGACTION; entry++) {
        residue->block_handlers[entry] = code + sj_residue_code_offset((sj_heap_entry)entry);
    }
    for (uint32_t entry = SJ_ENTRY_SIGACTION; entry < SJ_HEAP_ENTRIES; entry++) {
        residue->block_handlers[entry] = residue->originals[entry];
    }
    /* Delaying or counting may not have been stopped. */
    for (uint32_t entry = 0; entry < SJ_HEAP_ENTRIES; entry++) {
        atomic_store(&residue->delay_handlers[entry], 0);
        atomic_store(&residue->counting_handlers[entry], 0);
    }
}
