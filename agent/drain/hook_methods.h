/* Methods of runtimes that are recorded, or not, for what they cost: as sj_hook_functions does it
 * for functions that are hooked in place. */
#ifndef SJ_AGENT_DRAIN_HOOK_METHODS_H
#define SJ_AGENT_DRAIN_HOOK_METHODS_H

#include "agent/registry/registry.h"

/* sj_hook_methods is hook_methods of a governor; `registry` is its context, an sj_registry. Java
 * classes are transformed again. The link must be served meanwhile. Blocking: a second or more.
 * Errors as sj_jvm_select. */
SJ_MUST_CHECK sj_status sj_hook_methods(void *registry, uint64_t process, pid_t pid,
                                        uint32_t *functions, size_t *count, bool on,
                                        uint64_t *cost_ns, sj_error *error);

#endif
