/* The stub areas of the process, by address. They show for which instruction of the program a stub
 * stands. */
#ifndef SJ_AGENT_INPROC_HOOKS_STUB_AREAS_H
#define SJ_AGENT_INPROC_HOOKS_STUB_AREAS_H

#include "agent/abi/stub_map.h"

#include <stdbool.h>
#include <stdint.h>

extern sj_stub_ranges sj_stub_areas;

/* Adds an area of stubs. Thread-safe; takes no lock. Ignores areas beyond the 32,768th. */
void sj_stub_areas_add(const void *area, uint64_t bytes);

/* Removes an area that no thread runs any more. Ignores unknown areas. Thread-safe. */
void sj_stub_areas_remove(const void *area);

/* Returns the start of the area that contains `pc`, and its size in bytes, or 0 if there is none.
 * Async-signal-safe. */
uint64_t sj_stub_areas_find(uint64_t pc, uint64_t *bytes);

/* Returns the place that the stub at `pc` stands for, and its area. Returns false if `pc` is not in
 * an area, or if the area has no map. Async-signal-safe. */
bool sj_stubs_find(uint64_t pc, uint64_t *low, uint64_t *bytes, sj_stub_place *place);

/* Changes the state of a thread that is in a stub to the state that it would have in the program
 * without hooks. Returns false, and changes nothing, if the thread is not in a stub, or if its
 * place is unknown. Reads the thread's stack. Async-signal-safe. */
bool sj_stubs_leave(sj_stub_state *state);

#endif
