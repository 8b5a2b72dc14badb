/* Signals that the program handles. Its handlers see the interrupted instruction, not a copy of it
 * in a stub or a probe. When they return, the thread continues where it was.
 *
 * The kernel has gates of the agent as handlers, and a return function of the agent as restorer.
 * The program sees its own handlers and restorer (sigaction). The gate jumps to the program's
 * handler, which runs on the stack as the kernel has prepared it. */
#ifndef SJ_AGENT_INPROC_CORE_SIGNALS_H
#define SJ_AGENT_INPROC_CORE_SIGNALS_H

#include "proto/base/status.h"

#include <stdint.h>

/* Hooks the C library's system call rt_sigaction. In an attached process a tracer writes the hook.
 * Either no other thread runs, or prepare_only is set. Returns SJ_EUNSUPPORTED if its code is not
 * as expected, or errors of sj_hooks_redirect. */
SJ_MUST_CHECK sj_status sj_signals_follow(void);

/* Installs gates for all handlers that the program has, if rt_sigaction is hooked. Thread-safe;
 * takes no lock. */
void sj_signals_adopt(void);

/* Restores the program's handlers in the kernel. From then on no gate is installed. Running
 * handlers still return through the agent. Thread-safe; takes no lock. */
void sj_signals_leave(void);

/* Makes the gates serve the child of a fork. Call it in each forked child. */
void sj_signals_after_fork(void);

/* The assembly calls these functions (arch/<machine>/signals.S). All are async-signal-safe.
 *
 * sj_signals_enter returns the handler behind gate number `gate` and prepares its context.
 * `returns_to` is the handler's return address. `info` and `context` are read only if `returns_to`
 * is sj_arch_signal_return, because only then do they belong to the kernel's frame.
 *
 * sj_signals_return prepares the context with which the thread continues.
 *
 * sj_signals_change does the system call rt_sigaction. */
uint64_t sj_signals_enter(uint64_t signal, void *info, void *context, uint32_t gate,
                          uint64_t returns_to);
void sj_signals_return(void *context);
long sj_signals_change(uint64_t signal, const void *action, void *old, uint64_t set_bytes);

#endif
