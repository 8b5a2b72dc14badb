/* Sessions that are set apart: their blocks are stored, their sums could not be made. */
#ifndef SJ_COLLECTOR_CLI_APART_H
#define SJ_COLLECTOR_CLI_APART_H

#include "proto/ids.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

enum { SJ_APART_TEXT_BYTES = 256 };

/* What may be done; behind the reason. */
#define SJ_APART_NEXT                                                                              \
    "its calls are stored, \"sojourn sql\" asks for them; \"sojourn verify --rebuild SESSION\" "   \
    "tries again; --exclude and --depth make fewer call paths"

/* sj_apart_reason tells why a session is set apart; false, and "", when it is not. */
bool sj_apart_reason(sqlite3 *database, int64_t session_id, char reason[SJ_APART_TEXT_BYTES]);

/* sj_apart_reason_in opens the file for it, which nobody writes any more; false, too, when that
 * cannot be done. */
bool sj_apart_reason_in(const char *path, const sj_session_id *session,
                        char reason[SJ_APART_TEXT_BYTES]);

#endif
