/* Unwinds a frame of compiled C code with all its registers, by the unwind table of its module. */
#ifndef SJ_AGENT_INPROC_HOOKS_NATIVE_FRAME_H
#define SJ_AGENT_INPROC_HOOKS_NATIVE_FRAME_H

#include "agent/abi/machine.h"

#include SJ_ARCH_FILE(hooks, native_registers.h)

#include <stdbool.h>
#include <stdint.h>

/* A mapped module, and its index of unwind tables (.eh_frame_hdr). */
typedef struct sj_native_module {
    uint64_t low;
    uint64_t high;
    uint64_t index;
} sj_native_module;

/* sj_native_function returns the address of the function that holds `pc`, in a part of the module
 * that has one description in its unwind table; 0: it has none, or the index is of another form.
 * Async-signal-safe. */
uint64_t sj_native_function(const sj_native_module *module, uint64_t pc);

/* sj_native_leave changes the registers of a thread to those that it has when the function at
 * registers[SJ_NATIVE_PC] has returned. `is_behind`: that is behind a call. False, and nothing is
 * changed: the table does not say it, or says it in words that compilers do not use for C. Reads
 * the thread's stack above its pointer, and its red zone. Async-signal-safe. */
bool sj_native_leave(const sj_native_module *module, bool is_behind,
                     uint64_t registers[SJ_NATIVE_REGISTERS]);

#endif
