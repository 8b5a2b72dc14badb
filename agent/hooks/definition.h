/* Definitions: what the loader would find for a name, in a program that runs.
 *
 * dlsym waits for whoever loads modules, and that may be code of the program that waits for the
 * thread that asks. So the modules' own tables are read, under the lock of dl_iterate_phdr only,
 * and where more than one module defines a name there is no answer: which of them is meant depends
 * on how they were loaded. */
#ifndef SJ_AGENT_HOOKS_DEFINITION_H
#define SJ_AGENT_HOOKS_DEFINITION_H

#include <stdbool.h>
#include <stdint.h>

/* sj_definition_find returns the address of the function `name` of a version (NULL: none is asked
 * for), as a module's slot would hold it; 0 when none or several modules define it, or when only
 * the loader can tell. */
uint64_t sj_definition_find(const char *name, const char *version);

/* sj_definition_is_missing tells whether for certain no module defines the name, in any version. */
bool sj_definition_is_missing(const char *name);

/* sj_definition_is_code tells whether an address lies in the code of a loaded module. */
bool sj_definition_is_code(uint64_t address);

#endif
