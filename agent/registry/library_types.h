/* What debug data of a process's libraries say of the functions that a module calls in them. */
#ifndef SJ_AGENT_REGISTRY_LIBRARY_TYPES_H
#define SJ_AGENT_REGISTRY_LIBRARY_TYPES_H

#include "agent/objfile/function_types.h"

#include <sys/types.h>

typedef struct sj_library_types sj_library_types;

/* sj_library_types_new lists the libraries that a process has mapped, but for the module at
 * `besides`: none where the process is gone. One thread. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_library_types_new(pid_t pid, const char *besides,
                                             sj_library_types **libraries);
void sj_library_types_free(sj_library_types *libraries); /* NULL is allowed */

/* sj_library_types_find describes an import, "library!function", or "!function" where the module
 * does not say of which. Owned by the caller. Blocking: walks all of the library's DWARF, once.
 * SJ_ENOTFOUND: no library is called so, has debug data of it, or several have such a function;
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_library_types_find(sj_library_types *libraries, const char *import,
                                              sj_typed_function **function);

/* What other modules can call a module's functions. */
typedef struct sj_exported_names {
    struct {
        uint64_t address;
        char *name; /* owned */
    } * items;      /* by rising address */
    size_t count;
    size_t capacity;
} sj_exported_names;

/* sj_exported_names_read adds the names of the file at `path`: none where it is no module.
 * Blocking. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_exported_names_read(const char *path, sj_exported_names *names);
void sj_exported_names_deinit(sj_exported_names *names);

/* sj_exported_names_find returns the place of the first name of the function at `address`, or
 * count; its others follow. */
size_t sj_exported_names_find(const sj_exported_names *names, uint64_t address);

/* sj_library_name copies what a library says that it is called; "" where it says nothing, or more
 * than fits. */
void sj_library_name(const char *path, char *name, size_t capacity);

#endif
