/* Gives sampled allocations of the program guarded blocks. A guarded block has pages of its own
 * between inaccessible ("closed") pages. When the program frees the block, its pages are closed
 * until the pool reuses their slot. An access to a closed page is reported to the recorder
 * (agent/abi/zombies.h). Then the program continues, unless the policy says that it stops.
 *
 * This code runs in the program's threads, in signal handlers and inside malloc. So it takes no
 * lock, does not call the C library's allocator, and does not change errno. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_HEAP_GUARD_H
#define SJ_AGENT_INPROC_HEAP_GUARD_HEAP_GUARD_H

#include <stdbool.h>
#include <stdint.h>

/* Maps the region `name` in the directory `runtime`. The first call also patches the allocator's
 * functions. If that fails, changes no code, stores the reason in the region, and returns false
 * unless Objective-C objects are monitored. The caller has stopped all other threads.
 *
 * With `prepare_only`, a tracer writes the patches later. Then other threads may run, but only one
 * thread may call this function. Takes the loader's lock. */
bool sj_heap_guard_prepare(const char *runtime, const char *name, bool prepare_only);

/* Writes the addresses at which tracers find the patches (agent/abi/agent_state.h). Writes 0 if the
 * allocator is not patched. */
void sj_heap_guard_get_tables(uint64_t *heap_allocating, uint64_t *heap_residue);

/* Drops about half of the saved contents and delayed blocks, to save memory. Thread-safe. Takes no
 * lock. */
void sj_heap_guard_shrink(void);

/* True if frees are delayed. */
bool sj_heap_guard_delays_frees(void);

/* Stops delaying frees and frees the delayed blocks. Other threads may run. The caller holds no
 * lock. */
void sj_heap_guard_end_delays(void);

/* Reports each delayed block that the program wrote to. Call it when the program ends. */
void sj_heap_guard_check_delayed(void);

/* Prepares the agent's unloading: releases all memory except live guarded blocks and the code that
 * frees them. The caller has restored the entries of allocating functions and stopped all other
 * threads; none of them is in the agent. Takes no lock. */
void sj_heap_guard_detach(void);

/* Releases the stubs of allocating functions. Call it after sj_heap_guard_detach, with the same
 * conditions. */
void sj_heap_guard_release_code(void);

/* Adds the modules that were loaded since the last call to the region. Not thread-safe. Takes the
 * loader's lock. */
void sj_heap_guard_list_modules(void);

/* Makes a forked child stop reporting into its parent's region. Call it on the child's only
 * thread. */
void sj_heap_guard_after_fork(void);

/* Lets a forked child report into the region `name` in the directory `runtime`. Does nothing if the
 * parent was not monitored; then the next sj_heap_guard_prepare patches the allocator. Call it on
 * the child's only thread. Takes no lock. */
void sj_heap_guard_rejoin(const char *runtime, const char *name);

#endif
