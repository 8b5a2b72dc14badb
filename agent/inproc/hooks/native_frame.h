/* Unwinds a frame of compiled C code with all its registers, by the unwind table of its module. */
#ifndef SJ_AGENT_INPROC_HOOKS_NATIVE_FRAME_H
#define SJ_AGENT_INPROC_HOOKS_NATIVE_FRAME_H

#include "agent/abi/machine.h"

#include SJ_ARCH_FILE(hooks, native_registers.h)

#include <stdbool.h>
#include <stdint.h>

/* A mapped module [low, high), and the address of its .eh_frame_hdr. */
typedef struct sj_native_module {
    uint64_t low;
    uint64_t high;
    uint64_t index;
} sj_native_module;

/* Returns the start of the function that contains `pc`: the code that shares one description in the
 * unwind table. Returns 0 if `pc` has no description, or if the index has an unknown format.
 * Async-signal-safe. */
uint64_t sj_native_function(const sj_native_module *module, uint64_t pc);

/* Replaces a thread's registers by those that the thread has after the function at
 * registers[SJ_NATIVE_PC] has returned. `is_return_address` says that registers[SJ_NATIVE_PC] is
 * the return address of a call. Returns false, and changes nothing, if the table does not describe
 * the frame, or uses rules that compilers do not write for C. Reads the stack from the thread's
 * stack pointer upwards, and the red zone. Async-signal-safe. */
bool sj_native_leave(const sj_native_module *module, bool is_return_address,
                     uint64_t registers[SJ_NATIVE_REGISTERS]);

#endif
