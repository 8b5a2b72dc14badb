#include "agent/inproc/objc_zombies/internal.h"

size_t sj_arch_doors_write(uint8_t *code, const uint64_t *leads_to)
{
    (void)code;
    (void)leads_to;
    return 0;
}
