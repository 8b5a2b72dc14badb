/* Signals that the program handles: its handlers see the instruction that was interrupted, not the
 * copy of it in a stub or a probe, and returning from them goes on where the thread was.
 *
 * The kernel knows gates of ours as handlers and a return of ours as restorer; the program sees its
 * own. The gate jumps to the program's handler, which finds the stack that the kernel made. */
#ifndef SJ_AGENT_INPROC_CORE_SIGNALS_H
#define SJ_AGENT_INPROC_CORE_SIGNALS_H

#include "proto/base/status.h"

#include <stdint.h>

/* sj_signals_follow hooks the C library's system call rt_sigaction; in an attached process a tracer
 * writes the hook. No other thread runs, or prepare_only is set. SJ_EUNSUPPORTED if its code is not
 * as expected; errors of sj_hooks_redirect. */
SJ_MUST_CHECK sj_status sj_signals_follow(void);

/* sj_signals_adopt puts gates in front of all handlers that the program has, if rt_sigaction is
 * hooked. Any thread; takes no lock. */
void sj_signals_adopt(void);

/* sj_signals_leave gives the kernel the program's handlers back; from then on no gate is put in
 * front of one. Handlers that run return by way of the agent. Any thread; takes no lock. */
void sj_signals_leave(void);

/* sj_signals_after_fork is called in a forked child. */
void sj_signals_after_fork(void);

/* Called by the assembly (arch/<machine>/signals.S). sj_signals_enter returns the handler behind
 * gate number `gate`, for which it prepares the context; `returns_to` is where it will return. Both
 * pointers are read only if that is sj_arch_signal_return: they are the kernel's frame's then.
 * sj_signals_return prepares the context that the thread goes on with. sj_signals_change is the
 * system call rt_sigaction. All are async-signal-safe. */
uint64_t sj_signals_enter(uint64_t signal, void *info, void *context, uint32_t gate,
                          uint64_t returns_to);
void sj_signals_return(void *context);
long sj_signals_change(uint64_t signal, const void *action, void *old, uint64_t set_bytes);

#endif
