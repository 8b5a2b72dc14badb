/* Loads a shared library when it is first used. Few runs need such a library, and linking it would
 * make the loader bind it and its dependencies at the start of every command. */
#ifndef SJ_PROTO_BASE_LATE_LIBRARY_H
#define SJ_PROTO_BASE_LATE_LIBRARY_H

#include "proto/base/error.h"

#include <stddef.h>

/* A function of the library, and the offset of its pointer in the caller's structure. */
typedef struct sj_late_symbol {
    const char *name;
    size_t offset;
} sj_late_symbol;

/* Loads the library with the soname `library` and writes the addresses of `count` functions into
 * `functions`. The library stays loaded. Reads files at the first call. Thread-safe. Errors:
 * SJ_ENOTFOUND if the library or one of the functions is missing. */
SJ_MUST_CHECK sj_status sj_late_library_load(const char *library, const sj_late_symbol *symbols,
                                             size_t count, void *functions, sj_error *error);

#endif
