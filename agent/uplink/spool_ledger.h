/* The ledger of a spool: how far it has been acknowledged, in a file that a crash cannot tear.
 *
 * Two slots of 32 bytes are written in turn, each with a sequence number and a crc; the newer sound
 * one counts. A ledger that cannot be read means "nothing acknowledged": frames are then sent
 * again, which the collector recognises, and never lost. */
#ifndef SJ_AGENT_UPLINK_SPOOL_LEDGER_H
#define SJ_AGENT_UPLINK_SPOOL_LEDGER_H

#include "agent/control/error.h"

#include <stdint.h>

typedef struct sj_spool_ledger {
    int file;           /* also carries the lock of the spool */
    uint64_t sequence;  /* of the slot written last */
    uint64_t watermark; /* position before which all is acknowledged */
} sj_spool_ledger;

/* sj_spool_ledger_open opens or creates the file at `path` and locks it. SJ_EEXIST: another process
 * has it. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_spool_ledger_open(const char *path, sj_spool_ledger *ledger,
                                             sj_error *error);

/* sj_spool_ledger_advance writes a new watermark: at once safe against kill -9. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_spool_ledger_advance(sj_spool_ledger *ledger, uint64_t watermark);

/* sj_spool_ledger_sync puts the watermark on disk: must succeed before what it covers is deleted.
 */
SJ_MUST_CHECK sj_status sj_spool_ledger_sync(sj_spool_ledger *ledger);

void sj_spool_ledger_close(sj_spool_ledger *ledger);

#endif
