/* Problems of a stored session that a command reports. Its sums could not be made, though its
 * blocks are stored. Or its rarest call paths were folded. Or its recorder was killed. */
#ifndef SJ_COLLECTOR_SERVER_CLI_SESSION_DOUBTS_H
#define SJ_COLLECTOR_SERVER_CLI_SESSION_DOUBTS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum { SJ_QUARANTINE_TEXT_BYTES = 256 };

typedef struct sj_session_doubts {
    /* reason why the session has no sums; "": it has */
    char quarantine_reason[SJ_QUARANTINE_TEXT_BYTES];
    uint64_t folded_paths; /* number of folded paths */
    uint64_t folded_calls; /* calls that ended on the folded paths */
    /* its recorder is gone, and a spool in the usual place holds the rest of the session */
    bool is_abandoned;
} sj_session_doubts;

/* Printed after the reason: what the user can do. */
#define SJ_QUARANTINE_NEXT                                                                         \
    "its calls are stored, \"sojourn sql\" asks for them; \"sojourn verify --rebuild SESSION\" "   \
    "tries again; --exclude and --depth make fewer call paths"

/* Printed after the numbers: what the folding means and what the user can do. */
#define SJ_FOLDED_NEXT                                                                             \
    "the tree gives their calls by caller only; functions, callers and single calls are exact; "   \
    "--exclude and --depth make fewer call paths"

/* Printed after the name of a session whose recorder is gone. */
#define SJ_ABANDONED_NEXT                                                                          \
    "is not recorded any more, its recorder is gone; \"sojourn flush\" finishes it"

/* Reads the problems of a session. Reports none if they cannot be read. */
void sj_session_doubts_read(sqlite3 *database, int64_t session_id, sj_session_doubts *doubts);

#endif
