/* Mono from inside: records its methods through the runtime's own profiler interface.
 *
 * When Mono compiles a method it asks if the method is wanted. Code of a wanted method calls us at
 * its entry and its exits, and is never inlined. Any other method is compiled as without us and
 * costs nothing. Return addresses are not changed. Methods that were compiled earlier, or ahead of
 * time, do not call us. The runtime's functions are found by symbol, so this works in `mono` and in
 * programs that embed the runtime.
 *
 * The recorder decides by container which methods are functions of the session: it is asked about
 * an assembly once. A method whose assembly has no file is named by itself, and so is a method
 * without an assembly. */
#ifndef SJ_AGENT_INPROC_MONO_MONO_H
#define SJ_AGENT_INPROC_MONO_MONO_H

#include "agent/inproc/link/link_client.h"
#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes the hooks of generated code between two addresses, by the plan in the recorder's latest
 * reply, and reports the result. If threads may run the code (`runs`), it only prepares them. Sets
 * marks[i] to 1 if function i is hooked. Returns errors of the link, or SJ_ELIMIT. */
typedef sj_status sj_mono_hook(sj_link *link, uint64_t low, uint64_t high, bool runs,
                               uint8_t *marks);

/* Starts to record methods, with `runtimes` of the recorder's policy (sj_link_runtime bits). Makes
 * Mono compile methods again in a launched program if wanted ones may have been compiled ahead of
 * time. May be called again after sj_mono_stop. Returns false if the process has no runtime that
 * can be used. One thread at a time. */
bool sj_mono_monitor_start(uint32_t runtimes, sj_mono_hook *hook);

/* Call it when modules were loaded, under the loader's lock. A program may open the runtime later:
 * calls `start` once, before the runtime of a module that was just loaded initialises itself. */
void sj_mono_monitor_on_modules(void (*start)(void));

/* Wanted methods may have been compiled ahead of time. Call it before sj_mono_monitor_start. */
void sj_mono_want_precompiled(void);

/* Applies a new policy of the recorder. Prepares hooks, which the tracer writes. If
 * agent_state.bind_again is set afterwards, the tracer retries on another thread. */
void sj_mono_monitor_select(void);

/* Stops the runtime from calling us. Threads may still be in our code. One thread at a time. */
void sj_mono_stop(void);

/* The runtime calls sj_arch_mono_enter when a method begins. Its first SJ_MONO_TOUCH_CODE_BYTES
 * touch the stack as far down as callbacks need; until then only scratch registers have changed.
 * sj_mono_enter_caller is an address after the runtime's call of it; 0 before the first call. */
enum { SJ_MONO_TOUCHED_BYTES = 8192, SJ_MONO_TOUCH_CODE_BYTES = 7 };
void sj_arch_mono_enter(void *ours, void *method, void *context);
extern __attribute__((visibility("hidden"))) _Atomic uint64_t sj_mono_enter_caller;

/* True if we have registered with a runtime of the process. Async-signal-safe. */
bool sj_mono_is_registered(void);

/* Frees locks that another thread of the parent held. Call it on the child's only thread. */
void sj_mono_after_fork(void);

#endif
