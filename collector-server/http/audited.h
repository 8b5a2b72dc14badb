/* Writes requests into the audit (fleet/audit.h). */
#ifndef SJ_COLLECTOR_SERVER_HTTP_AUDITED_H
#define SJ_COLLECTOR_SERVER_HTTP_AUDITED_H

#include "collector-server/http/route.h"

/* Adds the row of a request that has been handled, if it has an action. A row that cannot be
 * written is logged. A statement that the same token ran within the same hour gets no second row.
 * Servers of one user (`sojourn ui`) and of a cluster write no rows about SQL. Blocks on other
 * writers. */
void sj_audited_write(const sj_request *request, sj_status status, const sj_error *error);

#endif
