/* Java methods that a process does not record because of their cost. */
#ifndef SJ_AGENT_REGISTRY_LEFT_OUT_H
#define SJ_AGENT_REGISTRY_LEFT_OUT_H

#include "agent/registry/registry_internal.h"

/* True if a process does not record a method of `class` because of its cost, and the method must
 * therefore have no probes. `method` is the method's index in the class. Returns false for a muted
 * method that keeps its probes, and if `class` is NULL. The caller holds the registry's mutex. */
bool sj_left_out_has(const sj_registry_class *class, uint64_t process, uint32_t method);

#endif
