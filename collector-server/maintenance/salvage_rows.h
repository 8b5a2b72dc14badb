/* The rows of a damaged table, read past its damaged pages. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_SALVAGE_ROWS_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_SALVAGE_ROWS_H

#include "collector-server/maintenance/salvage.h"

#include <sqlite3.h>

/* sj_salvage_rows inserts every row of the table `rows->name` of `source` that can be read into the
 * same table of `target`, and sets `rows->saved`, `rows->missing` and `rows->is_unknown`. A row
 * that `target` refuses, because a value has a wrong type or a key is there already, is missing.
 * `condition` limits the rows: SQL, NULL for all. Both connections have the same schema version.
 * SJ_EIO, SJ_EFULL, SJ_ENOMEM: `target` cannot be written, or there is no memory. Blocking. */
SJ_MUST_CHECK sj_status sj_salvage_rows(sqlite3 *source, sqlite3 *target, const char *condition,
                                        sj_salvaged_table *rows, sj_error *error);

#endif
