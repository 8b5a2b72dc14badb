#include "agent/inproc/heap_guard/custody.h"

const void *sj_custodian_code(size_t *bytes)
{
    *bytes = 0;
    return NULL;
}

uint64_t sj_custodian_offset(sj_zombie_head head)
{
    (void)head;
    return 0;
}
