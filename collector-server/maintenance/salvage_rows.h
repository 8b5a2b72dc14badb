/* Reads the rows of a damaged table, skipping its damaged pages. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_SALVAGE_ROWS_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_SALVAGE_ROWS_H

#include "collector-server/maintenance/salvage.h"

#include <sqlite3.h>

/* Copies every readable row of the table `rows->name` of `source` to the same table of `target`.
 * Sets `rows->saved`, `rows->missing` and `rows->is_unknown`.
 *
 * A row counts as missing if `target` refuses it, because a value has a wrong type or the key
 * exists already. `condition` is an SQL condition that limits the rows, or NULL. Both connections
 * have the same schema version. Returns SJ_EIO, SJ_EFULL or SJ_ENOMEM if `target` cannot be
 * written, or out of memory. Blocking. */
SJ_MUST_CHECK sj_status sj_salvage_rows(sqlite3 *source, sqlite3 *target, const char *condition,
                                        sj_salvaged_table *rows, sj_error *error);

#endif
