/* Java methods that a process does not record because of their cost. */
#ifndef SJ_AGENT_REGISTRY_LEFT_OUT_H
#define SJ_AGENT_REGISTRY_LEFT_OUT_H

#include "agent/registry/registry_internal.h"

/* True if a method of a class has no probes because of its cost. False if `class` is NULL: the
 * registry has not seen the class. The caller holds the registry's mutex. */
bool sj_left_out_has(const sj_registry_class *class, uint64_t process, uint32_t method);

#endif
