/* Replaces the loader's _dl_find_object, by which unwinders find the unwind tables of an address.
 * For code in stubs, the agent's function returns the stubs' tables. */
#ifndef SJ_AGENT_INPROC_CORE_FIND_OBJECT_H
#define SJ_AGENT_INPROC_CORE_FIND_OBJECT_H

#include <link.h>
#include <stdint.h>

/* The loader's _dl_find_object, or NULL if it has none. */
extern void *sj_find_object_real;

/* Finds the loader's _dl_find_object, which handles all other code. Call it before the program
 * runs, even if it is not recorded. Takes the loader's lock. */
void sj_find_object_begin(void);

/* Makes the loaded modules of an attached process ask the agent. Other threads may run. Takes the
 * loader's lock. */
void sj_find_object_bind(void);

/* Makes a module that an attached process has just mapped ask the agent: at once if it is
 * relocated, else when it is initialised. A module without initialisers asks the loader. So does
 * each module after the first 64. The caller holds the loader's lock. */
void sj_find_object_bind_later(const struct dl_phdr_info *info);

/* Frees the data of sj_find_object_bind_later for the module at `bias`, which was unloaded, or
 * whose load failed. Does nothing if there is none, or if `bias` is 0. The caller holds the
 * loader's lock. */
void sj_find_object_forget(uint64_t bias);

/* Makes relocated modules that waited for their initialisation ask the agent, unless the agent is
 * leaving. The caller holds the loader's lock. */
void sj_find_object_on_initialisation(void);

/* Makes the modules ask the loader again, because the agent is about to be unloaded. All other
 * threads are stopped, and none is in the agent. Takes the loader's lock. */
void sj_find_object_release(void);

#endif
