/* Decides which libraries in the system's folders belong to a program.
 *
 * The program's own libraries are: libraries that come from the program's Debian source package
 * (libMagickCore for convert, libxml2 for xmllint); libraries with the program's name (libjq for
 * jq); and libraries in the program's private folder below /usr/lib. The libraries of a language
 * runtime that has methods of its own (a JVM, Mono) are never the program's. Not thread-safe. */
#ifndef SJ_AGENT_REGISTRY_OWN_LIBRARIES_H
#define SJ_AGENT_REGISTRY_OWN_LIBRARIES_H

#include "agent/objfile/source_package.h"

#include <stdbool.h>
#include <stddef.h>

/* Facts that were read about one program. */
typedef struct sj_own_program {
    char *path;            /* owned */
    sj_source_files files; /* none if no package contains the program */
    bool is_runtime;       /* its source package contains a language runtime */
} sj_own_program;

/* Must be zeroed at first. If `database` is NULL, only names and folders decide. */
typedef struct sj_own_libraries {
    const char *database; /* dpkg's folder; borrowed; NULL: none */
    sj_own_program *programs;
    size_t count;
    size_t capacity;
} sj_own_libraries;

/* True if the library belongs to the program. Both are absolute paths. The first call for a program
 * reads dpkg's database, which blocks on the file system, and stores the result. Returns false if
 * out of memory. */
bool sj_own_libraries_has(sj_own_libraries *libraries, const char *program, const char *library);

/* Frees the stored results. */
void sj_own_libraries_deinit(sj_own_libraries *libraries);

#endif
