/* Salvage: finishes the sessions of recorders that were killed.
 *
 * What such a session left is three things: `<spool>/<session>.to`, which its recorder held locked
 * and which names destination and runtime directory; the spool, with all frames up to the kill; and
 * the runtime directory, with the arenas of its processes and the journal. Salvage drains what the
 * arenas still hold into the spool (blocks with the SALVAGED flag, as further streams of the same
 * threads), tells as a gap what the killed recorder had read and not spooled, sends the end of the
 * session ("lost") and removes the runtime directory. Processes that are still alive go on without
 * a drain. The caller delivers the spool.
 *
 * A profile's sums are those of the last checkpoint, at most two seconds old; what was read since
 * is told as a gap, and what the arenas still hold comes as blocks. The sealed blocks of flight
 * mode, with what the arenas hold, become a child session whose cause says so. */
#ifndef SJ_AGENT_CONTROL_SALVAGE_H
#define SJ_AGENT_CONTROL_SALVAGE_H

#include "agent/control/error.h"
#include "proto/ids.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sj_salvage_claim {
    int fd; /* of the .to file, locked; -1: none */
    char destination[PATH_MAX + 16];
    char runtime_directory[PATH_MAX];
    char spool_directory[PATH_MAX];
    char path[PATH_MAX]; /* of the .to file */
} sj_salvage_claim;

/* sj_salvage_claim_session locks the session whose .to file is `path`. SJ_EAGAIN: its recorder
 * lives; SJ_ENOTFOUND: there is no such session. Give it back with sj_salvage_release. */
SJ_MUST_CHECK sj_status sj_salvage_claim_session(const char *path, sj_salvage_claim *claim);

/* sj_salvage_release unlocks; `delivered` removes the .to file as well. */
void sj_salvage_release(sj_salvage_claim *claim, bool delivered);

typedef struct sj_salvage_result {
    bool salvaged; /* false: its recorder had ended it itself, there was nothing to do */
    uint64_t records;
    uint64_t calls;
} sj_salvage_result;

/* sj_salvage_session finishes a claimed session; does nothing when it has no journal. Blocking:
 * reads all that the arenas hold. */
SJ_MUST_CHECK sj_status sj_salvage_session(const sj_salvage_claim *claim, sj_salvage_result *result,
                                           sj_error *error);

/* sj_salvage_all finishes every session in `spool_root` whose recorder was killed; delivers
 * nothing. `*count` is how many there were; one that cannot be finished is left and told by
 * `error`, and the others go on. */
SJ_MUST_CHECK sj_status sj_salvage_all(const char *spool_root, unsigned *count, sj_error *error);

/* sj_salvage_is_claim_name tells whether a file name is that of a .to file. */
bool sj_salvage_is_claim_name(const char *name);

#endif
