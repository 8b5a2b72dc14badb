/* Test support: calls code with known values in all registers and checks the values afterwards. */
#ifndef SJ_TESTS_AGENT_INPROC_RECORDER_CALL_CHECKED_H
#define SJ_TESTS_AGENT_INPROC_RECORDER_CALL_CHECKED_H

#include "tests/agent/inproc/recorder/probe_code.h"

enum { ALL_FLAGS = 0xcd5, FLAGS_NEVER_FREE = 0x400 /* the direction flag */ };
enum { VECTORS_BEFORE = 512, VECTORS_AFTER = 4096, MASKS_AFTER = VECTORS_AFTER + 2048 };

extern void registers_call(probe_function probe, uint64_t flags, uint8_t *work);

static _Alignas(64) uint8_t work[8192];

/* Returns a combination of flags. Consecutive numbers give different ones. */
static inline uint64_t some_flags(uint32_t number)
{
    return 0x202 | (number & 1) | (number & 4) | (number & 2) << 9 | (number & 8) << 3 |
           (number & 16);
}

static inline void check_general(uint64_t flags, uint64_t kept)
{
    static const uint64_t expected[] = {0x1111111111111111, 0x2222222222222222, 0x3333333333333333,
                                        0x4444444444444444, 0x5555555555555555, 0x6666666666666666,
                                        0x7777777777777777, 0x0808080808080808, 0x0909090909090909,
                                        0x1010101010101010, 0x1111111111111101, 0x1212121212121212,
                                        0x1313131313131313, 0x1414141414141414, 0x1515151515151515};
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        uint64_t found;
        memcpy(&found, work + 64 + 8 * i, sizeof(found));
        CHECK(found == expected[i]);
    }
    uint64_t found_flags;
    memcpy(&found_flags, work + 184, sizeof(found_flags));
    CHECK((found_flags & kept) == (flags & kept));
}

static inline void check_vectors(bool wide)
{
    const size_t count = wide ? 32 : 16;
    const size_t bytes = wide ? 64 : 32;
    for (size_t i = 0; i < count; i++) {
        CHECK(memcmp(work + VECTORS_BEFORE + 64 * i, work + VECTORS_AFTER + 64 * i, bytes) == 0);
    }
    if (wide) {
        CHECK(memcmp(work + VECTORS_BEFORE + 8, work + MASKS_AFTER + 8, 56) == 0);
    }
}

/* Calls the probe once with known registers. The probe must keep all registers, and those flags
 * that are in `kept`. */
static inline void call_checked(probe_function probe, uint64_t flags, uint64_t kept)
{
    const bool wide = __builtin_cpu_supports("avx512bw");
    for (size_t i = 1; i < sizeof(work); i++) {
        work[i] = (uint8_t)(i * 37 + 11);
    }
    work[0] = wide;
    registers_call(probe, flags, work);
    check_general(flags, kept);
    check_vectors(wide);
}

#endif
