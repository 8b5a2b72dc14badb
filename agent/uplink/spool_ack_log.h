/* The ledger of a spool: how far it has been acknowledged, in a file that a crash cannot tear.
 *
 * Two slots of 32 bytes are written in turn, each with a sequence number and a crc; the newer sound
 * one counts. A ledger that cannot be read means "nothing acknowledged": frames are then sent
 * again, which the collector recognises, and never lost. */
#ifndef SJ_AGENT_UPLINK_SPOOL_ACK_LOG_H
#define SJ_AGENT_UPLINK_SPOOL_ACK_LOG_H

#include "proto/base/error.h"

#include <stdint.h>

typedef struct sj_spool_ack_log {
    int file;           /* also carries the lock of the spool */
    uint64_t sequence;  /* of the slot written last */
    uint64_t watermark; /* position before which all is acknowledged */
} sj_spool_ack_log;

/* sj_spool_ack_log_open opens or creates the file at `path` and locks it. SJ_EEXIST: another
 * process has it. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_spool_ack_log_open(const char *path, sj_spool_ack_log *ledger,
                                              sj_error *error);

/* sj_spool_ack_log_advance writes a new watermark: at once safe against kill -9. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_spool_ack_log_advance(sj_spool_ack_log *ledger, uint64_t watermark);

/* sj_spool_ack_log_sync puts the watermark on disk: must succeed before what it covers is deleted.
 */
SJ_MUST_CHECK sj_status sj_spool_ack_log_sync(sj_spool_ack_log *ledger);

void sj_spool_ack_log_close(sj_spool_ack_log *ledger);

#endif
