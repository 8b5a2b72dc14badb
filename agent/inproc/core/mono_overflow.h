/* Stack overflows where Mono calls the agent. Mono turns a fault of a method at the end of its
 * stack into a StackOverflowException, and ends the program for any other fault. So the fault of
 * the callback's touch is shown to Mono's handler as one of the method that called it. */
#ifndef SJ_AGENT_INPROC_CORE_MONO_OVERFLOW_H
#define SJ_AGENT_INPROC_CORE_MONO_OVERFLOW_H

#include "agent/abi/saved_context.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Changes the kernel's frame of a fault in the callback of entries to a fault of the method. Writes
 * to `*saved` where the fault was and what is shown. Returns false, without a change, for any other
 * fault. Call it before the thread's handler runs. Async-signal-safe. */
bool sj_mono_overflow_show(uint64_t signal, const siginfo_t *info, void *context,
                           sj_saved_context *saved);

/* Restores the registers in the frame of the thread's latest such fault. It does so only if `saved`
 * belongs to that fault and the handler has not changed where the thread continues. */
void sj_mono_overflow_return(void *context, const sj_saved_context *saved);

#endif
