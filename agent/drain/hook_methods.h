/* Enables or disables the recording of methods of runtimes because of their cost. sj_hook_functions
 * does the same for functions that are hooked in place. */
#ifndef SJ_AGENT_DRAIN_HOOK_METHODS_H
#define SJ_AGENT_DRAIN_HOOK_METHODS_H

#include "agent/modes/overhead_governor.h"
#include "agent/registry/registry.h"

/* Enables or disables Java methods for the governor (its `hook_methods` function). `registry` is
 * its context, an sj_registry. If all methods to disable in a class are rarely called, mutes them.
 * Otherwise makes the JVM transform the class again. The link must be served meanwhile. Blocks for
 * a second or more. Returns the errors of sj_jvm_select. */
SJ_MUST_CHECK sj_status sj_hook_methods(void *registry, sj_method_change *change, uint64_t *cost_ns,
                                        sj_error *error);

#endif
