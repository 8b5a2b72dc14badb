/* Writes requests into the audit (fleet/audit.h). */
#ifndef SJ_COLLECTOR_SERVER_HTTP_AUDITED_H
#define SJ_COLLECTOR_SERVER_HTTP_AUDITED_H

#include "collector-server/http/route.h"

/* Adds the row of a request that has been handled, if it has an action. Logs a row that cannot
 * be written. Adds no second row for a statement that the same token ran within the same hour.
 * Servers of one user (`sojourn ui`) and of a cluster write no rows about SQL. Waits for other
 * writers. */
void sj_audited_write(const sj_request *request, sj_status status, const sj_error *error);

#endif
