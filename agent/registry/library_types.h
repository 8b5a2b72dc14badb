/* Finds types of the functions that a module imports, in the debug data of a process's
 * libraries. */
#ifndef SJ_AGENT_REGISTRY_LIBRARY_TYPES_H
#define SJ_AGENT_REGISTRY_LIBRARY_TYPES_H

#include "agent/objfile/function_types.h"

#include <sys/types.h>

typedef struct sj_library_types sj_library_types;

/* Lists the libraries that a process has mapped, except for the module at `besides`. The list is
 * empty if the process has ended. One thread. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_library_types_new(pid_t pid, const char *besides,
                                             sj_library_types **libraries);
void sj_library_types_free(sj_library_types *libraries); /* NULL is allowed */

/* Finds the types of an imported function. `import` is "library!function", or "!function" if the
 * module does not say which library defines the function. The caller owns `*function`. Blocks when
 * a type of the library is first asked for, while it reads all DWARF of the library.
 *
 * Returns SJ_ENOTFOUND if the process has no such library, the library has no debug data of the
 * function, or several libraries define the function. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_library_types_find(sj_library_types *libraries, const char *import,
                                              sj_typed_function **function);

/* The exported functions of a module. */
typedef struct sj_exported_names {
    struct {
        uint64_t address;
        char *name; /* owned */
    } * items;      /* ordered by address */
    size_t count;
    size_t capacity;
} sj_exported_names;

/* Adds the exported names of the file at `path`. Adds none if the file is not a module. Blocking.
 * Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_exported_names_read(const char *path, sj_exported_names *names);
void sj_exported_names_deinit(sj_exported_names *names);

/* Returns the index of the first name of the function at `address`, or `count` if it has none. The
 * function's other names follow it in `items`. */
size_t sj_exported_names_find(const sj_exported_names *names, uint64_t address);

/* Copies the name that the library at `path` gives itself (DT_SONAME). Writes "" if it has none or
 * the name does not fit. */
void sj_library_name(const char *path, char *name, size_t capacity);

#endif
