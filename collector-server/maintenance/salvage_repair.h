/* Repairs salvaged rows that refer to lost ones: adds substitutes, or drops the rows. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_SALVAGE_REPAIR_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_SALVAGE_REPAIR_H

#include "collector-server/maintenance/salvage.h"

#include <sqlite3.h>

/* Makes every reference of `database` valid. Adds to `substitutes` and `dropped` of
 * `salvaged->tables`.
 *
 * A lost device, module, hook plan or function gets a substitute. An optional reference to another
 * lost row becomes NULL. Any other row with an invalid reference is dropped, and so are the rows
 * that refer to it. The connection does not enforce foreign keys. Returns SJ_EIO, SJ_EFULL or
 * SJ_ENOMEM. Blocking. */
SJ_MUST_CHECK sj_status sj_salvage_repair(sqlite3 *database, sj_salvaged *salvaged,
                                          sj_error *error);

#endif
