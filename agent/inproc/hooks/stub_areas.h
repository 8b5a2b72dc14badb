/* A table of the process's stub areas by address. It leads from an address in a stub to the
 * program's instruction that the stub replaces. */
#ifndef SJ_AGENT_INPROC_HOOKS_STUB_AREAS_H
#define SJ_AGENT_INPROC_HOOKS_STUB_AREAS_H

#include "agent/abi/stub_map.h"

#include <stdbool.h>
#include <stdint.h>

extern sj_stub_ranges sj_stub_areas;

/* Adds a stub area. Ignores it if the table has SJ_STUB_RANGES areas. Thread-safe; takes no
 * lock. */
void sj_stub_areas_add(const void *area, uint64_t bytes);

/* Removes an area. No thread may run its code any more. Ignores unknown areas. Thread-safe. */
void sj_stub_areas_remove(const void *area);

/* Returns the start of the area that contains `pc`, or 0 if there is none. Writes the area's size
 * to `*bytes`. Async-signal-safe. */
uint64_t sj_stub_areas_find(uint64_t pc, uint64_t *bytes);

/* Finds the place in the program that the stub code at `pc` replaces. Writes the start and the size
 * of the stub area to `*low` and `*bytes`. Returns false if `pc` is not in an area, or if the
 * area's map does not cover it. Async-signal-safe. */
bool sj_stubs_find(uint64_t pc, uint64_t *low, uint64_t *bytes, sj_stub_place *place);

/* Changes the state of a thread that is in a stub to the state that the thread would have in the
 * program without hooks. Returns false, and changes nothing, if the thread is not in a stub, or if
 * its place is unknown. Reads the thread's stack. Async-signal-safe. */
bool sj_stubs_leave(sj_stub_state *state);

#endif
