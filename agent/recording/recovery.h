/* Recovery: finishes the sessions of recorders that were killed.
 *
 * A killed recorder leaves three things:
 *
 * 1. `<spool>/<session>.to`, which its recorder had locked. It names the destination and the
 * runtime directory.
 * 2. The spool, with all frames up to the kill.
 * 3. The runtime directory, with the arenas of its processes and the journal.
 *
 * Recovery reads the rest of the arenas into the spool, as blocks with the RECOVERED flag in
 * further streams of the same threads. It reports, as a gap, the records that the killed recorder
 * had read from the arenas but not written to the spool. It then sends the end of the session
 * ("lost") and removes the runtime directory. Living processes continue without a drain. The caller
 * delivers the spool.
 *
 * In profile mode, the sums and open calls are those of the last checkpoint, at most two seconds
 * before the kill. Records that the recorder read after the checkpoint are reported as a gap.
 * Records that are still in the arenas are sent as blocks.
 *
 * In flight mode, the complete blocks of the flight recorder and the content of the arenas become a
 * child session. Its cause says that the recorder was killed. */
#ifndef SJ_AGENT_RECORDING_RECOVERY_H
#define SJ_AGENT_RECORDING_RECOVERY_H

#include "proto/base/error.h"
#include "proto/base/ids.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sj_recovery_claim {
    int fd; /* the .to file, locked; -1: none */
    char destination[PATH_MAX + 16];
    char runtime_directory[PATH_MAX];
    char spool_directory[PATH_MAX];
    char path[PATH_MAX]; /* path of the .to file */
} sj_recovery_claim;

/* Locks the session whose .to file is `path`. Release it with sj_recovery_release. Returns
 * SJ_EAGAIN if its recorder lives, SJ_ENOTFOUND if the session does not exist. */
SJ_MUST_CHECK sj_status sj_recovery_claim_session(const char *path, sj_recovery_claim *claim);

/* Unlocks the session. If `delivered`, also removes the .to file. */
void sj_recovery_release(sj_recovery_claim *claim, bool delivered);

typedef struct sj_recovery_result {
    bool recovered; /* false: the recorder had ended the session, so there was nothing to do */
    uint64_t records;
    uint64_t calls;
    /* number of processes whose arena is damaged or was written by another version; their records
     * are lost */
    uint64_t unreadable_processes;
} sj_recovery_result;

/* Finishes a claimed session. Does nothing if it has no journal. Blocks while it reads all records
 * in the arenas. Returns an error of sj_journal_open, sj_device_read, sj_spool_open or
 * sj_frame_writer_send. Returns SJ_EFULL if the spool has no space for the last frames. The session
 * then stays. */
SJ_MUST_CHECK sj_status sj_recovery_session(const sj_recovery_claim *claim,
                                            sj_recovery_result *result, sj_error *error);

/* Finishes every session in `spool_root` whose recorder was killed. Delivers nothing. Writes the
 * number of these sessions to `*count`. If a session cannot be finished, it stays, `error`
 * describes it, and the other sessions are processed. Returns the error of the last such session,
 * or SJ_EIO if `spool_root` cannot be read. */
SJ_MUST_CHECK sj_status sj_recovery_all(const char *spool_root, unsigned *count, sj_error *error);

/* True if a file name ends in ".to". */
bool sj_recovery_is_claim_name(const char *name);

#endif
