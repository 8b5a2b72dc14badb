/* Reads and writes the interrupted thread's state in a signal's frame. Finds space in the frame
 * that the kernel does not read: after the last record of extended registers. */
#ifndef SJ_AGENT_INPROC_CORE_ARCH_AARCH64_SIGNAL_CONTEXT_H
#define SJ_AGENT_INPROC_CORE_ARCH_AARCH64_SIGNAL_CONTEXT_H

#include "agent/abi/saved_context.h"
#include "agent/abi/stub_map.h"
#include "agent/inproc/hooks/native_frame.h"

#include <stddef.h>

/* The kernel's ucontext: indexes of words, and the range of the records in bytes. */
enum {
    SJ_CONTEXT_FIRST = 184 / 8,
    SJ_CONTEXT_LINK = SJ_CONTEXT_FIRST + 30,
    SJ_CONTEXT_SP = 432 / 8,
    SJ_CONTEXT_PC = 440 / 8,
    SJ_CONTEXT_RECORDS_AT = 464,
    SJ_CONTEXT_RECORDS_BYTES = 4096
};

static inline sj_stub_state sj_context_get(const void *frame)
{
    const uint64_t *words = frame;
    return (sj_stub_state){
        .pc = words[SJ_CONTEXT_PC], .sp = words[SJ_CONTEXT_SP], .link = words[SJ_CONTEXT_LINK]};
}

static inline void sj_context_set(void *frame, const sj_stub_state *state)
{
    uint64_t *words = frame;
    words[SJ_CONTEXT_PC] = state->pc;
    words[SJ_CONTEXT_SP] = state->sp;
    words[SJ_CONTEXT_LINK] = state->link;
}

/* Writes the fault address. It precedes 31 registers and the stack pointer. */
static inline void sj_context_set_fault(void *frame, uint64_t address)
{
    uint64_t *words = frame;
    words[SJ_CONTEXT_PC - 33] = address;
}

/* Copies all registers. The kernel keeps them in the order of their DWARF numbers. */
static inline void sj_context_get_all(const void *frame, uint64_t registers[SJ_NATIVE_REGISTERS])
{
    __builtin_memcpy(registers, (const uint64_t *)frame + SJ_CONTEXT_FIRST,
                     SJ_NATIVE_REGISTERS * sizeof(*registers));
}

static inline void sj_context_set_all(void *frame, const uint64_t registers[SJ_NATIVE_REGISTERS])
{
    __builtin_memcpy((uint64_t *)frame + SJ_CONTEXT_FIRST, registers,
                     SJ_NATIVE_REGISTERS * sizeof(*registers));
}

/* Returns the space that the kernel does not read, or NULL if the frame has none. */
static inline sj_saved_context *sj_context_saved(void *frame)
{
    uint8_t *records = (uint8_t *)frame + SJ_CONTEXT_RECORDS_AT;
    const size_t most = SJ_CONTEXT_RECORDS_BYTES;
    struct {
        uint32_t magic;
        uint32_t bytes;
    } record = {0, 0};
    size_t at = 0;
    do {
        if (most - at < sizeof(record)) {
            return NULL;
        }
        __builtin_memcpy(&record, records + at, sizeof(record));
        if (record.magic == 0) {
            at += 2 * sizeof(record);
            return at <= most && most - at >= sizeof(sj_saved_context)
                       ? (sj_saved_context *)(void *)(records + at)
                       : NULL;
        }
        at += record.bytes;
    } while (record.bytes != 0 && at <= most);
    return NULL;
}

#endif
