/* The plan's checksum without proto/crc32c.c, whose headers need the vector registers that the
 * agent is built without. */
#include "agent/planner/plan_crc.h"

#include "agent/planner/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define CRC32C_POLYNOMIAL UINT32_C(0x82f63b78)

enum { BYTE_VALUES = 256, FIELD = offsetof(sj_plan_header, crc32c) };

static uint32_t crc_by_table(uint32_t crc, const uint8_t *at, size_t size)
{
    uint32_t table[BYTE_VALUES];
    for (uint32_t i = 0; i < BYTE_VALUES; i++) {
        table[i] = i;
        for (uint32_t bit = 0; bit < 8; bit++) {
            table[i] = table[i] >> 1 ^ (CRC32C_POLYNOMIAL & (0 - (table[i] & 1)));
        }
    }
    for (size_t i = 0; i < size; i++) {
        crc = crc >> 8 ^ table[(crc ^ at[i]) & (BYTE_VALUES - 1)];
    }
    return crc;
}

#if defined(__x86_64__)

static bool has_instruction(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_2) != 0;
}

/* The plan of a large program is checked at its every start: a table takes 15 ms for cc1's. */
static uint32_t crc_of(uint32_t crc, const uint8_t *at, size_t size)
{
    uint64_t state = crc;
    if (!has_instruction()) {
        return crc_by_table(crc, at, size);
    }
    for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, at, sizeof(word));
        __asm__("crc32q %1, %0" : "+r"(state) : "rm"(word));
    }
    return crc_by_table((uint32_t)state, at, size);
}

#else

static uint32_t crc_of(uint32_t crc, const uint8_t *at, size_t size)
{
    return crc_by_table(crc, at, size);
}

#endif

uint32_t sj_plan_crc(const void *bytes, size_t size_bytes)
{
    static const uint8_t zero[sizeof(uint32_t)];
    const uint8_t *at = bytes;
    uint32_t crc = crc_of(UINT32_MAX, at, FIELD);
    crc = crc_of(crc, zero, sizeof(zero));
    return ~crc_of(crc, at + FIELD + sizeof(zero), size_bytes - FIELD - sizeof(zero));
}
