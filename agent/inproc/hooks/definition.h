/* Definitions: what the loader would find for a name, in a running program.
 *
 * dlsym waits for a thread that loads modules, and that thread may run code of the program that
 * waits for the calling thread. So the modules' own tables are read, under the lock of
 * dl_iterate_phdr only. If more than one module defines a name there is no answer, because the
 * right one depends on how they were loaded. */
#ifndef SJ_AGENT_INPROC_HOOKS_DEFINITION_H
#define SJ_AGENT_INPROC_HOOKS_DEFINITION_H

#include <stdbool.h>
#include <stdint.h>

/* sj_definition_find returns the address of the function `name` of a version (NULL: any), as a
 * module's slot would hold it; 0 when none or several modules define it, or when only the loader
 * can decide. */
uint64_t sj_definition_find(const char *name, const char *version);

/* sj_definition_oldest returns the address of the oldest version of a function, which a module that
 * names no version is bound to. Returns 0 if the first module that defines the name has only one
 * version of it, or not the oldest. Any thread; takes the lock of dl_iterate_phdr. */
uint64_t sj_definition_oldest(const char *name);

/* sj_definition_is_missing: certainly no module defines the name, in any version. */
bool sj_definition_is_missing(const char *name);

/* sj_definition_is_code: an address lies in the code of a loaded module. */
bool sj_definition_is_code(uint64_t address);

#endif
