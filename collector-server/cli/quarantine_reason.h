/* Sessions that are quarantined: their blocks are stored, their sums could not be made. */
#ifndef SJ_COLLECTOR_SERVER_CLI_QUARANTINE_REASON_H
#define SJ_COLLECTOR_SERVER_CLI_QUARANTINE_REASON_H

#include "proto/base/ids.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

enum { SJ_QUARANTINE_TEXT_BYTES = 256 };

/* What may be done; behind the reason. */
#define SJ_QUARANTINE_NEXT                                                                         \
    "its calls are stored, \"sojourn sql\" asks for them; \"sojourn verify --rebuild SESSION\" "   \
    "tries again; --exclude and --depth make fewer call paths"

/* sj_quarantine_reason finds out why a session is quarantined; false, and "", when it is not. */
bool sj_quarantine_reason(sqlite3 *database, int64_t session_id,
                          char reason[SJ_QUARANTINE_TEXT_BYTES]);

/* sj_quarantine_reason_in opens the file for it, which nobody writes any more; false, too, when
 * that cannot be done. */
bool sj_quarantine_reason_in(const char *path, const sj_session_id *session,
                             char reason[SJ_QUARANTINE_TEXT_BYTES]);

#endif
