/* Salvaged rows that refer to lost ones: substitutes for what they need, or they are dropped. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_SALVAGE_REPAIR_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_SALVAGE_REPAIR_H

#include "collector-server/maintenance/salvage.h"

#include <sqlite3.h>

/* sj_salvage_repair makes every reference of `database` lead to a row, and adds up
 * `substitutes` and `dropped` of `salvaged->tables`. A lost device, module, hook plan or function
 * gets a substitute. A reference that may be empty becomes empty; any other row whose reference
 * leads nowhere is dropped, and the rows that refer to it, too. Foreign keys are not enforced by
 * the connection. SJ_EIO, SJ_EFULL, SJ_ENOMEM. Blocking. */
SJ_MUST_CHECK sj_status sj_salvage_repair(sqlite3 *database, sj_salvaged *salvaged,
                                          sj_error *error);

#endif
