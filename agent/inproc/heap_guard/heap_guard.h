/* Guarded blocks for sampled allocations of the program's allocator. A block has pages of its own
 * between closed pages. When the block is freed its pages are closed, too, until the pool needs the
 * slot again. An access to a closed page is reported to the recorder (agent/abi/zombies.h), and the
 * program continues.
 *
 * Everything runs in the program's threads, in signal handlers and inside malloc. So the code takes
 * no lock, calls nothing of the C library's allocator, and keeps errno. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_HEAP_GUARD_H
#define SJ_AGENT_INPROC_HEAP_GUARD_HEAP_GUARD_H

#include <stdbool.h>
#include <stdint.h>

/* Maps the region `name` in the directory `runtime`. The first call also patches the entries of the
 * allocator. Returns false without a change if that fails; the region, if it exists, says why. The
 * caller has stopped all other threads. With `prepare_only` a tracer writes the changes later, and
 * other threads may run, but only one may call this. Takes the loader's lock. */
bool sj_heap_guard_prepare(const char *runtime, const char *name, bool prepare_only);

/* Writes where tracers find the changes of the entries (agent/abi/agent_state.h). Writes 0 if there
 * are none. */
void sj_heap_guard_get_tables(uint64_t *heap_allocating, uint64_t *heap_residue);

/* Halves the memory that freed blocks use. Thread-safe; takes no lock. */
void sj_heap_guard_shrink(void);

/* sj_heap_guard_delays_frees: true if frees are delayed. sj_heap_guard_end_delays frees the delayed
 * blocks; other threads may run, and the caller holds no lock. sj_heap_guard_check_delayed reports
 * which delayed blocks were written to; call it when the program ends. */
bool sj_heap_guard_delays_frees(void);
void sj_heap_guard_end_delays(void);
void sj_heap_guard_check_delayed(void);

/* sj_heap_guard_detach prepares the agent's unloading. The caller has restored the allocating
 * entries. It gives back all memory except live guarded blocks and the code that frees them.
 * sj_heap_guard_release_code then releases the code that was behind the allocating entries. The
 * caller has stopped all other threads, and none is in the agent. Takes no lock. */
void sj_heap_guard_detach(void);
void sj_heap_guard_release_code(void);

/* Adds the modules that were loaded since the last call to the region. One thread at a time. Takes
 * the loader's lock. */
void sj_heap_guard_list_modules(void);

/* Makes a forked child stop reporting into its parent's region. Call it on the child's only thread.
 */
void sj_heap_guard_after_fork(void);

/* Lets a forked child report into the region `name` in the directory `runtime`, as its parent did.
 * If the parent was not monitored, this does nothing, and the next sj_heap_guard_prepare patches
 * the entries. Call it on the child's only thread. Takes no lock. */
void sj_heap_guard_rejoin(const char *runtime, const char *name);

#endif
