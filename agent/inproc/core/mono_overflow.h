/* Stack overflows where Mono calls the agent. Mono turns a fault of a method at the end of its
 * stack into a StackOverflowException, and ends the program for any other fault. The agent's
 * callback accesses the stack below itself (sj_arch_mono_enter). If that access faults, Mono's
 * handler is shown a fault of the method that called the callback. */
#ifndef SJ_AGENT_INPROC_CORE_MONO_OVERFLOW_H
#define SJ_AGENT_INPROC_CORE_MONO_OVERFLOW_H

#include "agent/abi/saved_context.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Changes the kernel's frame of a fault in the callback of entries to a fault of the method. Writes
 * the true and the shown registers to `*saved`. Returns false, without a change, for any other
 * fault. Call it before the thread's handler runs. Async-signal-safe. */
bool sj_mono_overflow_show(uint64_t signal, const siginfo_t *info, void *context,
                           sj_saved_context *saved);

/* Restores the registers that sj_mono_overflow_show has changed at the thread's latest fault. Does
 * nothing if `saved` belongs to another fault, or if the handler has changed where the thread
 * continues. */
void sj_mono_overflow_return(void *context, const sj_saved_context *saved);

#endif
