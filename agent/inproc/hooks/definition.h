/* Finds the address that the loader would find for a symbol's name, in a running program.
 *
 * dlsym waits for a thread that loads modules. That thread may run code of the program that waits
 * for the calling thread. So these functions read the modules' own tables. They take only the lock
 * of dl_iterate_phdr. If several modules define a name, no address is returned: the right one
 * depends on how the modules were loaded. All functions are thread-safe. */
#ifndef SJ_AGENT_INPROC_HOOKS_DEFINITION_H
#define SJ_AGENT_INPROC_HOOKS_DEFINITION_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the address of the function `name` in `version` (NULL: the default version), as an import
 * slot would hold it. May call the resolver of an indirect function (STT_GNU_IFUNC). Returns 0 in
 * these cases:
 *   * no module defines the function, or several do
 *   * the symbol is not a function
 *   * a module has no hash table (DT_GNU_HASH), so it cannot be searched
 *   * only the loader can call the function's resolver on this machine */
uint64_t sj_definition_find(const char *name, const char *version);

/* Returns the address of the function in the first version that its module defines. The loader
 * binds importing modules that name no version to this address. Returns 0 if the first module that
 * defines the name has only one symbol of that name, or none in the first version. */
uint64_t sj_definition_oldest(const char *name);

/* True if it is certain that no module defines the name, in any version. */
bool sj_definition_is_missing(const char *name);

/* True if the address lies in an executable segment of a loaded module. */
bool sj_definition_is_code(uint64_t address);

#endif
