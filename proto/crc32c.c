/* CRC-32C (Castagnoli, reflected): the CPU's instruction where it has one, else a table. */
#include "proto/crc32c.h"

#include "proto/frame.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#define CRC_TARGET __attribute__((target("sse4.2")))
#define CRC_OF_8(crc, value) ((uint32_t)_mm_crc32_u64((crc), (value)))
#define CRC_OF_1(crc, value) _mm_crc32_u8((crc), (value))
#elif defined(__aarch64__)
#pragma GCC push_options
#pragma GCC target("+crc")
#include <arm_acle.h>
#pragma GCC pop_options
#include <asm/hwcap.h>
#include <sys/auxv.h>
#define CRC_TARGET __attribute__((target("+crc")))
#define CRC_OF_8(crc, value) __crc32cd((crc), (value))
#define CRC_OF_1(crc, value) __crc32cb((crc), (value))
#endif

/* The crc is linear, so the entry of a byte is the sum of the entries of its bits. */
#define BIT(b, n, crc) (((b) >> (n)&1U) != 0 ? UINT32_C(crc) : 0U)
#define ENTRY(b)                                                                                   \
    (BIT(b, 0, 0xf26b8303) ^ BIT(b, 1, 0xe13b70f7) ^ BIT(b, 2, 0xc79a971f) ^                       \
     BIT(b, 3, 0x8ad958cf) ^ BIT(b, 4, 0x105ec76f) ^ BIT(b, 5, 0x20bd8ede) ^                       \
     BIT(b, 6, 0x417b1dbc) ^ BIT(b, 7, 0x82f63b78))
#define ENTRIES_4(b) ENTRY(b), ENTRY((b) + 1U), ENTRY((b) + 2U), ENTRY((b) + 3U)
#define ENTRIES_16(b) ENTRIES_4(b), ENTRIES_4((b) + 4U), ENTRIES_4((b) + 8U), ENTRIES_4((b) + 12U)
#define ENTRIES_64(b)                                                                              \
    ENTRIES_16(b), ENTRIES_16((b) + 16U), ENTRIES_16((b) + 32U), ENTRIES_16((b) + 48U)

static const uint32_t byte_entries[256] = {ENTRIES_64(0U), ENTRIES_64(64U), ENTRIES_64(128U),
                                           ENTRIES_64(192U)};

uint32_t sj_crc32c_portable(uint32_t crc, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc = crc >> 8 ^ byte_entries[(crc ^ at[i]) & 0xff];
    }
    return ~crc;
}

#ifdef CRC_TARGET
static bool has_instruction(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("sse4.2");
#else
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
#endif
}

CRC_TARGET static uint32_t crc_by_instruction(uint32_t crc, const uint8_t *at, size_t size)
{
    crc = ~crc;
    for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, at, sizeof(word));
        crc = CRC_OF_8(crc, word);
    }
    for (; size > 0; size--, at++) {
        crc = CRC_OF_1(crc, *at);
    }
    return ~crc;
}
#endif

uint32_t sj_crc32c(uint32_t crc, const void *bytes, size_t size)
{
#ifdef CRC_TARGET
    if (has_instruction()) {
        return crc_by_instruction(crc, bytes, size);
    }
#endif
    return sj_crc32c_portable(crc, bytes, size);
}
