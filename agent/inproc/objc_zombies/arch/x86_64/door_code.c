#include "agent/inproc/objc_zombies/internal.h"

#include <string.h>

size_t sj_arch_doors_write(uint8_t *code, const uint64_t *leads_to)
{
    /* xor %eax,%eax; xor %edx,%edx; pxor %xmm0,%xmm0; pxor %xmm1,%xmm1; ret */
    static const uint8_t zero[] = {0x31, 0xc0, 0x31, 0xd2, 0x66, 0x0f, 0xef,
                                   0xc0, 0x66, 0x0f, 0xef, 0xc9, 0xc3};
    for (uint32_t i = 0; i < SJ_DOORS; i++) {
        /* endbr64; jmp *word(%rip) */
        uint8_t jump[] = {0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0, 0, 0, 0};
        uint8_t *door = code + (size_t)i * SJ_DOOR_BYTES;
        const int32_t distance = (int32_t)((const uint8_t *)&leads_to[i] - (door + sizeof(jump)));
        memcpy(jump + 6, &distance, sizeof(distance));
        memcpy(door, jump, sizeof(jump));
    }
    memcpy(code + (size_t)SJ_DOORS * SJ_DOOR_BYTES, zero, sizeof(zero));
    return (size_t)SJ_DOORS * SJ_DOOR_BYTES;
}
