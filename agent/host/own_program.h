/* Finds the file of the running program. A package for devices contains its own C library, and that
 * library's loader starts the program. Then /proc/self/exe is the loader. */
#ifndef SJ_AGENT_HOST_OWN_PROGRAM_H
#define SJ_AGENT_HOST_OWN_PROGRAM_H

#include "proto/base/error.h"

#include <limits.h>

enum { SJ_OWN_ARGUMENTS = 7 };

typedef struct sj_own_program {
    char path[PATH_MAX];      /* Absolute. */
    char libraries[PATH_MAX]; /* Folder of the loader; "" if the kernel started the program. */
} sj_own_program;

/* Finds the running program. Thread-safe. Returns SJ_EIO, for example if /proc is not mounted. */
SJ_MUST_CHECK sj_status sj_own_program_find(sj_own_program *program, sj_error *error);

/* Writes an argument vector, with a final NULL, that makes /proc/self/exe start this program again
 * as `name` with one argument. Its pointers refer to `program`, `name` and `argument`. */
void sj_own_program_arguments(sj_own_program *program, char *name, char *argument,
                              char *arguments[SJ_OWN_ARGUMENTS + 1]);

#endif
