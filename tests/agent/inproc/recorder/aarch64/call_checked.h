/* Test support: calls code with known values in all registers and checks the values afterwards. */
#ifndef SJ_TESTS_AGENT_INPROC_RECORDER_AARCH64_CALL_CHECKED_H
#define SJ_TESTS_AGENT_INPROC_RECORDER_AARCH64_CALL_CHECKED_H

#include "tests/agent/inproc/recorder/probe_code.h"

enum { VECTORS_BEFORE = 512, VECTORS_AFTER = 4096, REGISTERS = 64, VECTORS = 32, FLAGS_SHIFT = 28 };

#define ALL_FLAGS (UINT64_C(15) << FLAGS_SHIFT)
#define FLAGS_NEVER_FREE ALL_FLAGS /* probes that need not keep the flags keep them, too */

extern void registers_call(probe_function probe, uint64_t flags, uint8_t *work);

static _Alignas(64) uint8_t work[8192];

/* Returns a combination of flags. Consecutive numbers give different ones. */
static inline uint64_t some_flags(uint32_t number)
{
    return (uint64_t)(number * 5 % 16) << FLAGS_SHIFT;
}

static inline uint64_t stored_register(uint32_t number)
{
    uint64_t value;
    memcpy(&value, work + REGISTERS + 8 * number, sizeof(value));
    return value;
}

/* Calls the probe once with known registers. The probe must keep all registers, including the link
 * register, and those flags that are in `kept`. */
static inline void call_checked(probe_function probe, uint64_t flags, uint64_t kept)
{
    for (size_t i = 0; i < sizeof(work); i++) {
        work[i] = (uint8_t)(i * 37 + 11);
    }
    registers_call(probe, flags, work);
    for (uint32_t i = 0; i < 30; i++) {
        CHECK(i == 28 || stored_register(i) == UINT64_C(0x0101010101010101) * i + 1);
    }
    CHECK(stored_register(28) == (uint64_t)(uintptr_t)probe);
    CHECK((stored_register(30) & kept) == (flags & kept));
    for (size_t i = 0; i < VECTORS; i++) {
        CHECK(memcmp(work + VECTORS_BEFORE + 64 * i, work + VECTORS_AFTER + 64 * i, 16) == 0);
    }
}

#endif
