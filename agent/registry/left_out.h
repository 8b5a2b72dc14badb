/* Java methods that a process does not record for what they cost. */
#ifndef SJ_AGENT_REGISTRY_LEFT_OUT_H
#define SJ_AGENT_REGISTRY_LEFT_OUT_H

#include "agent/registry/registry_internal.h"

/* sj_left_out_has returns whether a method of a class (NULL: it was not seen) has no probes for
 * that. The registry's mutex is held. */
bool sj_left_out_has(const sj_registry_class *class, uint64_t process, uint32_t method);

#endif
