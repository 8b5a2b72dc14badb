/* The stub areas of the process, by address: which instruction of the program a thread is at that
 * runs a stub. */
#ifndef SJ_AGENT_INPROC_HOOKS_STUB_AREAS_H
#define SJ_AGENT_INPROC_HOOKS_STUB_AREAS_H

#include "agent/abi/stub_map.h"

#include <stdbool.h>
#include <stdint.h>

extern sj_stub_ranges sj_stub_areas;

/* sj_stub_areas_add makes an area of stubs known. Any thread; takes no lock. Areas beyond the
 * 32,768th stay unknown. */
void sj_stub_areas_add(const void *area, uint64_t bytes);

/* sj_stub_areas_remove forgets an area that no thread runs any more; one that is not known is left
 * alone. Any thread. */
void sj_stub_areas_remove(const void *area);

/* sj_stub_areas_find returns where the area begins that holds `pc`, and how many bytes it has; 0:
 * none does. Async-signal-safe. */
uint64_t sj_stub_areas_find(uint64_t pc, uint64_t *bytes);

/* sj_stubs_find returns what the stub at `pc` stands for, and its area. False if `pc` is in no
 * area, or that has no map. Async-signal-safe. */
bool sj_stubs_find(uint64_t pc, uint64_t *low, uint64_t *bytes, sj_stub_place *place);

/* sj_stubs_leave changes the state of a thread that is in a stub to what it would be in the program
 * without hooks. False, and nothing is changed: it is in none, or its place is not known. Reads the
 * thread's stack. Async-signal-safe. */
bool sj_stubs_leave(sj_stub_state *state);

#endif
