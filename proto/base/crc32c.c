/* CRC-32C (Castagnoli, reflected). Uses the CPU's instruction if it has one, else a table. */
#include "proto/base/crc32c.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#define HAS_CRC_INSTRUCTION 1
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#define HAS_CRC_INSTRUCTION 1
#endif

/* A CRC is linear: the table entry of a byte is the XOR of the entries of its set bits. */
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

#ifdef HAS_CRC_INSTRUCTION

/* Inline assembly, because the headers of the intrinsics need vector registers, and code inside the
 * traced program is compiled without them. */
#if defined(__x86_64__)

static bool detect_instruction(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_2) != 0;
}

static uint32_t add_word(uint32_t crc, uint64_t word)
{
    uint64_t wide = crc;
    __asm__("crc32q %1, %0" : "+r"(wide) : "rm"(word));
    return (uint32_t)wide;
}

static uint32_t add_byte(uint32_t crc, uint8_t byte)
{
    __asm__("crc32b %1, %0" : "+r"(crc) : "rm"(byte));
    return crc;
}

#else

static bool detect_instruction(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
}

static uint32_t add_word(uint32_t crc, uint64_t word)
{
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
    return crc;
}

static uint32_t add_byte(uint32_t crc, uint8_t byte)
{
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t)byte));
    return crc;
}

#endif

static bool has_instruction(void)
{
    enum { UNKNOWN, YES, NO };
    static int cached; /* because CPUID takes microseconds in a virtual machine */
    int found = __atomic_load_n(&cached, __ATOMIC_RELAXED);
    if (found == UNKNOWN) {
        found = detect_instruction() ? YES : NO;
        __atomic_store_n(&cached, found, __ATOMIC_RELAXED);
    }
    return found == YES;
}

static uint32_t crc_by_instruction(uint32_t crc, const uint8_t *at, size_t size)
{
    crc = ~crc;
    for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, at, sizeof(word));
        crc = add_word(crc, word);
    }
    for (; size > 0; size--, at++) {
        crc = add_byte(crc, *at);
    }
    return ~crc;
}
#endif

uint32_t sj_crc32c(uint32_t crc, const void *bytes, size_t size)
{
#ifdef HAS_CRC_INSTRUCTION
    if (has_instruction()) {
        return crc_by_instruction(crc, bytes, size);
    }
#endif
    return sj_crc32c_portable(crc, bytes, size);
}
