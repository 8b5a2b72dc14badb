/* Names and lines that arrive after the calls: `sojourn symbols add`. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_SYMBOLS_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_SYMBOLS_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdint.h>

typedef struct sj_late_symbols {
    int64_t named; /* functions that had no name */
    int64_t lined; /* functions that have file and line now */
    int64_t inlined;
} sj_late_symbols;

/* sj_late_symbols_add takes what a file says about the functions of modules with its build-id, in
 * one transaction; `database` was opened with SJ_DATABASE_WRITE. Functions that have a symbol keep
 * it. SJ_ENOTFOUND: no session loaded a module with this build-id; SJ_EUNSUPPORTED: no ELF file
 * with a build-id; SJ_EIO, SJ_EFULL, SJ_EAGAIN. Blocking. */
SJ_MUST_CHECK sj_status sj_late_symbols_add(sqlite3 *database, const char *path,
                                            sj_late_symbols *added, sj_error *error);

#endif
