/* The plan's checksum without the crc instruction of proto/crc32c.c, whose headers need the vector
 * registers that the agent is built without. */
#include "agent/planner/plan_crc.h"

#include "agent/planner/plan.h"

#include <stdbool.h>
#include <stddef.h>

#define CRC32C_POLYNOMIAL UINT32_C(0x82f63b78)

enum { BYTE_VALUES = 256, FIELD = offsetof(sj_plan_header, crc32c) };

uint32_t sj_plan_crc(const void *bytes, size_t size_bytes)
{
    const uint8_t *at = bytes;
    uint32_t table[BYTE_VALUES];
    uint32_t crc = UINT32_MAX;
    for (uint32_t i = 0; i < BYTE_VALUES; i++) {
        table[i] = i;
        for (uint32_t bit = 0; bit < 8; bit++) {
            table[i] = table[i] >> 1 ^ (CRC32C_POLYNOMIAL & (0 - (table[i] & 1)));
        }
    }
    for (size_t i = 0; i < size_bytes; i++) {
        const bool is_field = i >= FIELD && i < FIELD + sizeof(uint32_t);
        crc = crc >> 8 ^ table[(crc ^ (is_field ? 0 : at[i])) & (BYTE_VALUES - 1)];
    }
    return ~crc;
}
