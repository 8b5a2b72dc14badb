/* Records methods inside a Mono runtime, by the runtime's own profiler interface.
 *
 * When Mono compiles a method, it calls the agent's filter. The code of a selected method calls the
 * agent at its entry and exits, and is never inlined. Other methods have no cost. Return addresses
 * do not change. Methods that Mono compiled before the agent's start, or ahead of time, do not call
 * the agent; their code can be patched (sj_mono_hook). The runtime's functions are found by symbol,
 * in `mono` and in programs that embed the runtime.
 *
 * The agent asks the recorder once per assembly which of its methods are recorded. If a method's
 * assembly has no file, or if the method has no assembly, the agent asks about the method by its
 * name. */
#ifndef SJ_AGENT_INPROC_MONO_MONO_H
#define SJ_AGENT_INPROC_MONO_MONO_H

#include "agent/inproc/link/link_client.h"
#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Patches generated code between two addresses, by the plan in the recorder's latest reply, and
 * reports the result. If threads may run the code (`runs`), only prepares the patches. Sets
 * marks[i] to 1 if function i of that plan is patched. Returns errors of the link, or SJ_ELIMIT. */
typedef sj_status sj_mono_hook(sj_link *link, uint64_t low, uint64_t high, bool runs,
                               uint8_t *marks);

/* Starts to record methods. `runtimes` are the sj_link_runtime bits of the policy. In a launched
 * program, makes Mono ignore precompiled code if selected methods may be in it. May be called again
 * after sj_mono_stop. Returns false if the process has no runtime that can be used. If
 * agent_state.bind_again is set afterwards, the tracer retries on another thread. Not thread-safe.
 */
bool sj_mono_monitor_start(uint32_t runtimes, sj_mono_hook *hook);

/* If a launched program loads a runtime later, calls `start` once before that runtime initialises
 * itself. Call it after modules were loaded, under the loader's lock. */
void sj_mono_monitor_on_modules(void (*start)(void));

/* Tells the next sj_mono_monitor_start that methods of precompiled code are to be recorded. It then
 * makes Mono ignore that code and compile the methods. */
void sj_mono_want_precompiled(void);

/* Applies a new policy of the recorder. Prepares patches, which the tracer writes. If
 * agent_state.bind_again is set afterwards, the tracer retries on another thread. */
void sj_mono_monitor_select(void);

/* Removes the runtime's callbacks. Threads may still be running in them. Not thread-safe. */
void sj_mono_stop(void);

/* The runtime's callback for the entry of a method. Its first SJ_MONO_TOUCH_CODE_BYTES bytes of
 * code access the stack SJ_MONO_TOUCHED_BYTES below the stack pointer. Callbacks need at most that
 * much, so a stack overflow faults there. Before that access, the code has changed no callee-saved
 * register. */
enum { SJ_MONO_TOUCHED_BYTES = 8192, SJ_MONO_TOUCH_CODE_BYTES = 7 };
void sj_arch_mono_enter(void *ours, void *method, void *context);

/* A return address of sj_arch_mono_enter in the runtime; 0 until a call takes the slow path. */
extern __attribute__((visibility("hidden"))) _Atomic uint64_t sj_mono_enter_caller;

/* True if the agent is registered as a profiler of a runtime. Async-signal-safe. */
bool sj_mono_is_registered(void);

/* Releases locks that another thread of the parent held. Call it on the child's only thread. */
void sj_mono_after_fork(void);

#endif
