/* Zombies: guarded blocks for sampled allocations of the C library. A block has pages of its own
 * between closed pages; when it is freed its pages are closed too, until the room is needed again.
 * What touches a closed page is reported to the recorder (agent/abi/zombies.h) and goes on.
 *
 * Everything runs in the program's threads, in signal handlers and within malloc: no lock, no
 * function of the C library's allocator, errno kept. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_ZOMBIES_H
#define SJ_AGENT_INPROC_HEAP_GUARD_ZOMBIES_H

#include <stdbool.h>
#include <stdint.h>

/* sj_zombies_prepare maps the region `name` in the directory `runtime` and, the first time, patches
 * the entries of the allocator. False, and the region says why, if it exists: nothing is changed.
 * No other thread runs, or, with `prepare_only`, a tracer writes the changes later; then one thread
 * at a time. Takes the loader's lock. */
bool sj_zombies_prepare(const char *runtime, const char *name, bool prepare_only);

/* sj_zombies_get_tables says where tracers find the changes (agent/abi/agent_state.h); 0: there are
 * none. */
void sj_zombies_get_tables(uint64_t *heap_takers, uint64_t *heap_custody);

/* sj_zombies_shrink halves the memory of freed blocks. Any thread; takes no lock. */
void sj_zombies_shrink(void);

/* sj_zombies_has_quarantine: freed blocks are kept. sj_zombies_end_quarantine lets them go; other
 * threads run, and the calling one holds no lock. sj_zombies_check_quarantine reports what has
 * written to them, at the end of the program. */
bool sj_zombies_has_quarantine(void);
void sj_zombies_end_quarantine(void);
void sj_zombies_check_quarantine(void);

/* sj_zombies_leave gives back what the monitor has, but for blocks that the program still has and
 * what frees them. No other thread runs, and none is in the agent; the entries that give blocks out
 * are restored. sj_zombies_forget then releases the code that was behind these. Neither takes a
 * lock. */
void sj_zombies_leave(void);
void sj_zombies_forget(void);

/* sj_zombies_note_modules adds the modules that were loaded since to the region. One thread at a
 * time. Takes the loader's lock. */
void sj_zombies_note_modules(void);

/* sj_zombies_after_fork makes a forked child stop reporting into its parent's region. The only
 * thread of the child. */
void sj_zombies_after_fork(void);

/* sj_zombies_rejoin then lets the child report into the region `name` in the directory `runtime`
 * what its parent monitored. Nothing, if the parent monitored nothing: the next sj_zombies_prepare
 * does what is still to be done. The only thread of the child. Takes no lock. */
void sj_zombies_rejoin(const char *runtime, const char *name);

#endif
