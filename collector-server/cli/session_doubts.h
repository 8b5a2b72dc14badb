/* Problems of a stored session that commands report: the session has no sums although its blocks
 * are stored; its rarest call paths were folded; its recorder was killed; parts of the program were
 * not recorded. */
#ifndef SJ_COLLECTOR_SERVER_CLI_SESSION_DOUBTS_H
#define SJ_COLLECTOR_SERVER_CLI_SESSION_DOUBTS_H

#include "collector-server/cli/function_name.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum { SJ_QUARANTINE_TEXT_BYTES = 256 };

typedef struct sj_session_doubts {
    /* reason why the session has no sums; "": the session has sums */
    char quarantine_reason[SJ_QUARANTINE_TEXT_BYTES];
    uint64_t folded_paths; /* number of folded paths */
    uint64_t folded_calls; /* calls that ended on the folded paths */
    /* The session counts as being recorded, but its recorder no longer runs. The default spool of
     * this machine holds the rest of the session. */
    bool is_abandoned;
    /* processes and modules that the recorder could not record, as a sentence; "": none */
    char not_recorded[SJ_FUNCTION_NAME_BYTES];
} sj_session_doubts;

/* Printed after quarantine_reason. */
#define SJ_QUARANTINE_NEXT                                                                         \
    "its calls are stored, \"sojourn sql\" asks for them; \"sojourn verify --rebuild SESSION\" "   \
    "tries again; --exclude and --depth make fewer call paths"

/* Printed after the numbers of folded paths and calls. */
#define SJ_FOLDED_NEXT                                                                             \
    "the tree gives their calls by caller only; functions, callers and single calls are exact; "   \
    "--exclude and --depth make fewer call paths"

/* Printed after the id of an abandoned session. */
#define SJ_ABANDONED_NEXT                                                                          \
    "is not recorded any more, its recorder is gone; \"sojourn flush\" finishes it"

/* Reads the problems of a session. Writes zeros (no problems) if the database cannot be read. */
void sj_session_doubts_read(sqlite3 *database, int64_t session_id, sj_session_doubts *doubts);

#endif
