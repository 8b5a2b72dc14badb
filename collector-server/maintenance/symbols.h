/* Adds names and lines to stored functions: `sojourn symbols add`. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_SYMBOLS_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_SYMBOLS_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdint.h>

typedef struct sj_late_symbols {
    int64_t named;   /* number of functions that had no symbol and now have one */
    int64_t lined;   /* number of functions whose file and line were added or replaced */
    int64_t inlined; /* number of inlined functions that were added */
} sj_late_symbols;

/* Adds the names and lines of an ELF file to the functions of modules with its build-id, in one
 * transaction. `database` was opened with SJ_DATABASE_WRITE. Functions that have a symbol keep
 * it. Returns SJ_ENOTFOUND if no session loaded a module with this build-id. Returns
 * SJ_EUNSUPPORTED if it is not an ELF file with a build-id; SJ_EIO, SJ_EFULL, SJ_EAGAIN or
 * SJ_ENOMEM. Blocking. */
SJ_MUST_CHECK sj_status sj_late_symbols_add(sqlite3 *database, const char *path,
                                            sj_late_symbols *added, sj_error *error);

#endif
