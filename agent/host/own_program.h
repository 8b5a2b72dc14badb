/* Finds the file of the running program. A folder for devices brings its own C library, and starts
 * the program by that library's loader. Then /proc/self/exe is the loader. */
#ifndef SJ_AGENT_HOST_OWN_PROGRAM_H
#define SJ_AGENT_HOST_OWN_PROGRAM_H

#include "proto/base/error.h"

#include <limits.h>

enum { SJ_OWN_ARGUMENTS = 7 };

typedef struct sj_own_program {
    char path[PATH_MAX];      /* Absolute. */
    char libraries[PATH_MAX]; /* Folder of the loader that started the program. "": the kernel did.
                               */
} sj_own_program;

/* Finds the running program. Does not block. Thread-safe. Returns SJ_EIO if /proc is not mounted.
 */
SJ_MUST_CHECK sj_status sj_own_program_find(sj_own_program *program, sj_error *error);

/* Writes the arguments with which /proc/self/exe starts this program again under the name `name`,
 * with one argument, and a NULL. They refer to `program`, `name` and `argument`. */
void sj_own_program_arguments(sj_own_program *program, char *name, char *argument,
                              char *arguments[SJ_OWN_ARGUMENTS + 1]);

#endif
