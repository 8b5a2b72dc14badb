/* Recovery: finishes the sessions of recorders that were killed.
 *
 * What such a session left is three things: `<spool>/<session>.to`, which its recorder held locked
 * and which names destination and runtime directory; the spool, with all frames up to the kill; and
 * the runtime directory, with the arenas of its processes and the journal. Recovery drains what the
 * arenas still hold into the spool (blocks with the RECOVERED flag, as further streams of the same
 * threads), reports as a gap what the killed recorder had read and not spooled, sends the end of
 * the session ("lost") and removes the runtime directory. Processes that are still alive go on
 * without a drain. The caller delivers the spool.
 *
 * A profile's sums and open calls are those of the last checkpoint, at most two seconds old; what
 * was read since is reported as a gap, and what the arenas still hold comes as blocks. The sealed
 * blocks of flight mode, with what the arenas hold, become a child session whose cause says so. */
#ifndef SJ_AGENT_RECORDING_RECOVERY_H
#define SJ_AGENT_RECORDING_RECOVERY_H

#include "proto/base/error.h"
#include "proto/base/ids.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sj_recovery_claim {
    int fd; /* of the .to file, locked; -1: none */
    char destination[PATH_MAX + 16];
    char runtime_directory[PATH_MAX];
    char spool_directory[PATH_MAX];
    char path[PATH_MAX]; /* of the .to file */
} sj_recovery_claim;

/* sj_recovery_claim_session locks the session whose .to file is `path`. SJ_EAGAIN: its recorder
 * lives; SJ_ENOTFOUND: there is no such session. Give it back with sj_recovery_release. */
SJ_MUST_CHECK sj_status sj_recovery_claim_session(const char *path, sj_recovery_claim *claim);

/* sj_recovery_release unlocks; `delivered` removes the .to file as well. */
void sj_recovery_release(sj_recovery_claim *claim, bool delivered);

typedef struct sj_recovery_result {
    bool recovered; /* false: its recorder had ended it itself, there was nothing to do */
    uint64_t records;
    uint64_t calls;
} sj_recovery_result;

/* sj_recovery_session finishes a claimed session; does nothing when it has no journal. Blocking:
 * reads all that the arenas hold. */
SJ_MUST_CHECK sj_status sj_recovery_session(const sj_recovery_claim *claim,
                                            sj_recovery_result *result, sj_error *error);

/* sj_recovery_all finishes every session in `spool_root` whose recorder was killed; delivers
 * nothing. `*count` is how many there were; one that cannot be finished is left and reported in
 * `error`, and the others go on. */
SJ_MUST_CHECK sj_status sj_recovery_all(const char *spool_root, unsigned *count, sj_error *error);

/* sj_recovery_is_claim_name returns whether a file name is that of a .to file. */
bool sj_recovery_is_claim_name(const char *name);

#endif
