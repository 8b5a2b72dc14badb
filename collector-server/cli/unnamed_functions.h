/* Called functions without a name: how many one module has, and the Debian package that names
 * them. */
#ifndef SJ_COLLECTOR_SERVER_CLI_UNNAMED_FUNCTIONS_H
#define SJ_COLLECTOR_SERVER_CLI_UNNAMED_FUNCTIONS_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>

#define SJ_DPKG_FOLDER "/var/lib/dpkg"

enum { SJ_UNNAMED_FILE_BYTES = 128, SJ_UNNAMED_PACKAGE_BYTES = 288 };

/* The module with the most called functions without a name. Zeroed: all functions have names. */
typedef struct sj_unnamed_functions {
    uint64_t unnamed; /* called functions of the module without a name */
    uint64_t called;  /* called functions of the module */
    char file[SJ_UNNAMED_FILE_BYTES];
    /* Debian package of debug symbols; "": dpkg does not know the file */
    char package[SJ_UNNAMED_PACKAGE_BYTES];
} sj_unnamed_functions;

/* Reads the module with the most called functions without a name. `dpkg` is dpkg's folder, usually
 * SJ_DPKG_FOLDER. Leaves `found` zeroed if less than a tenth of the module's called functions have
 * no name. Blocks on the database and on dpkg's files. Returns the errors of sj_sql_each. */
SJ_MUST_CHECK sj_status sj_unnamed_functions_read(sqlite3 *database, int64_t session_id,
                                                  const char *dpkg, sj_unnamed_functions *found,
                                                  sj_error *error);

/* Writes a line about the functions, which begins with `first` and ends with the command that names
 * them. Writes nothing if all functions have names. */
void sj_unnamed_functions_print(FILE *file, const sj_unnamed_functions *found, const char *first);

#endif
