#include "agent/inproc/heap_guard/internal.h"

bool sj_entries_supported(void)
{
    return false;
}

void sj_entries_emit(void *context, sj_code_emitter *emitter, uint32_t index)
{
    (void)context;
    (void)emitter;
    (void)index;
}
