/* Stacks that end where Mono calls the agent. Mono turns the fault of a method at the end of its
 * stack into a StackOverflowException, and ends the program for any other: so the fault of the
 * callback's touch is shown to its handler as one of the method that called it. */
#ifndef SJ_AGENT_INPROC_CORE_MONO_OVERFLOW_H
#define SJ_AGENT_INPROC_CORE_MONO_OVERFLOW_H

#include "agent/abi/saved_context.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* sj_mono_overflow_show changes the kernel's frame of a fault in the callback of entries to that of
 * the method, and says in `saved` where it was and what is shown. False: it is no such fault, and
 * nothing is changed. The calling thread's handler runs. Async-signal-safe. */
bool sj_mono_overflow_show(uint64_t signal, const siginfo_t *info, void *context,
                           sj_saved_context *saved);

/* sj_mono_overflow_return gives the frame of the latest such fault of the calling thread its
 * registers back, if it is the one of `saved`, whose handler has not changed where the thread goes
 * on. */
void sj_mono_overflow_return(void *context, const sj_saved_context *saved);

#endif
