/* What is to be reported of the sums of a stored session: that they could not be made (its blocks
 * are stored), or that its rarest call paths were folded; and that its recorder was killed. */
#ifndef SJ_COLLECTOR_SERVER_CLI_SESSION_DOUBTS_H
#define SJ_COLLECTOR_SERVER_CLI_SESSION_DOUBTS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum { SJ_QUARANTINE_TEXT_BYTES = 256 };

typedef struct sj_session_doubts {
    char quarantine_reason[SJ_QUARANTINE_TEXT_BYTES]; /* why the session has no sums; "": it has */
    uint64_t folded_paths;                            /* 0: none */
    uint64_t folded_calls;                            /* that ended on them */
    bool is_abandoned; /* its recorder is gone, and a spool in the usual place has the rest of it */
} sj_session_doubts;

/* What may be done; behind the reason. */
#define SJ_QUARANTINE_NEXT                                                                         \
    "its calls are stored, \"sojourn sql\" asks for them; \"sojourn verify --rebuild SESSION\" "   \
    "tries again; --exclude and --depth make fewer call paths"

/* What it means, and what may be done; behind the numbers. */
#define SJ_FOLDED_NEXT                                                                             \
    "the tree gives their calls by caller only; functions, callers and single calls are exact; "   \
    "--exclude and --depth make fewer call paths"

/* Behind the name of a session whose recorder is gone. */
#define SJ_ABANDONED_NEXT                                                                          \
    "is not recorded any more, its recorder is gone; \"sojourn flush\" finishes it"

/* sj_session_doubts_read finds out what is to be reported of a session; nothing when it cannot. */
void sj_session_doubts_read(sqlite3 *database, int64_t session_id, sj_session_doubts *doubts);

#endif
