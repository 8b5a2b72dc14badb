/* Methods of runtimes that are recorded, or not, for what they cost: as sj_hook_functions does it
 * for functions that are hooked in place. */
#ifndef SJ_AGENT_DRAIN_HOOK_METHODS_H
#define SJ_AGENT_DRAIN_HOOK_METHODS_H

#include "agent/modes/overhead_governor.h"
#include "agent/registry/registry.h"

/* sj_hook_methods is hook_methods of a governor; `registry` is its context, an sj_registry. Rare
 * methods are muted, where all of their class that are to go are rare; the classes of others are
 * transformed again. The link must be served meanwhile. Blocking: a second or more. Errors as
 * sj_jvm_select. */
SJ_MUST_CHECK sj_status sj_hook_methods(void *registry, sj_method_change *change, uint64_t *cost_ns,
                                        sj_error *error);

#endif
