/* Writes requests to the audit (fleet/audit.h). */
#ifndef SJ_COLLECTOR_SERVER_HTTP_AUDITED_H
#define SJ_COLLECTOR_SERVER_HTTP_AUDITED_H

#include "collector-server/http/route.h"

/* Adds the row of a request that has been handled, unless request->action is NULL. Logs an error if
 * the row cannot be written. If a token repeats an SQL statement or a refused POST in the same hour
 * of the clock, it usually gets no second row: only the latest SJ_ASKED_REMEMBERED requests are
 * remembered. Servers of one user (`sojourn ui`) and of a cluster write no rows about SQL. Waits
 * for other writers. */
void sj_audited_write(const sj_request *request, sj_status status, const sj_error *error);

#endif
