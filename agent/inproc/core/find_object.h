/* Answers unwinders that ask the loader about code in stubs. */
#ifndef SJ_AGENT_INPROC_CORE_FIND_OBJECT_H
#define SJ_AGENT_INPROC_CORE_FIND_OBJECT_H

#include <link.h>
#include <stdint.h>

/* The loader's _dl_find_object; NULL: it has none. */
extern void *sj_find_object_real;

/* sj_find_object_begin finds the loader's _dl_find_object, which answers for all other code. Before
 * the program runs, whether it is recorded or not. Takes the loader's lock. */
void sj_find_object_begin(void);

/* sj_find_object_bind has the loaded modules of an attached process ask the agent. Other threads
 * may run. Takes the loader's lock. */
void sj_find_object_bind(void);

/* sj_find_object_bind_later has a module that an attached process has just mapped ask the agent: at
 * once if it is relocated, else when it is initialised. It asks the loader if it has no
 * initialisers, or if 64 such modules are loaded already. Under the loader's lock. */
void sj_find_object_bind_later(const struct dl_phdr_info *info);

/* sj_find_object_forget frees what sj_find_object_bind_later has made for the module at `bias`,
 * which was unloaded, or was not loaded after all. Does nothing if that made nothing, or if `bias`
 * is 0. Under the loader's lock. */
void sj_find_object_forget(uint64_t bias);

/* sj_find_object_on_initialisation has the relocated modules that waited for their initialisation
 * ask the agent, unless it is leaving. Under the loader's lock. */
void sj_find_object_on_initialisation(void);

/* sj_find_object_release has them ask the loader again: the agent is going to be unloaded. All
 * other threads are stopped, none of them in the agent. Takes the loader's lock. */
void sj_find_object_release(void);

#endif
