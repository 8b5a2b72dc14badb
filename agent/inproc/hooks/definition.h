/* Definitions: the address that the loader would find for a name, in a running program.
 *
 * dlsym waits for a thread that loads modules, and that thread may run code of the program that
 * waits for the calling thread. So these functions read the modules' own tables, and take only the
 * lock of dl_iterate_phdr. If several modules define a name, no address is returned: the right one
 * depends on how the modules were loaded. */
#ifndef SJ_AGENT_INPROC_HOOKS_DEFINITION_H
#define SJ_AGENT_INPROC_HOOKS_DEFINITION_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the address of the function `name` of a version (NULL: any), as a module's slot would
 * hold it. Returns 0 if no module or several modules define it, or if only the loader can
 * decide. */
uint64_t sj_definition_find(const char *name, const char *version);

/* Returns the address of the oldest version of a function. A module that names no version is bound
 * to it. Returns 0 if the first module that defines the name has only one version of it, or not the
 * oldest. Thread-safe; takes the lock of dl_iterate_phdr. */
uint64_t sj_definition_oldest(const char *name);

/* True if certainly no module defines the name, in any version. */
bool sj_definition_is_missing(const char *name);

/* True if the address lies in the code of a loaded module. */
bool sj_definition_is_code(uint64_t address);

#endif
