/* The ledger of a spool: its acknowledged position, in a file that a crash cannot tear.
 *
 * Two slots of 32 bytes are written in turn, each with a sequence number and a checksum (CRC). Of
 * the slots with a correct checksum, the newer one counts. If the ledger cannot be read, no frame
 * counts as acknowledged. Then all frames are sent again, and the collector recognises those that
 * it has. So no frame is lost. */
#ifndef SJ_AGENT_UPLINK_SPOOL_ACK_LOG_H
#define SJ_AGENT_UPLINK_SPOOL_ACK_LOG_H

#include "proto/base/error.h"

#include <stdint.h>

typedef struct sj_spool_ack_log {
    int file;           /* Also holds the lock of the spool. */
    uint64_t sequence;  /* Sequence number of the latest slot. */
    uint64_t watermark; /* All frames before this position are acknowledged. */
} sj_spool_ack_log;

/* Opens or creates the file at `path` and locks it. Returns SJ_EEXIST if another process has locked
 * it, or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_spool_ack_log_open(const char *path, sj_spool_ack_log *ledger,
                                              sj_error *error);

/* Writes a new watermark, which survives kill -9 at once. Returns SJ_EIO if that fails. */
SJ_MUST_CHECK sj_status sj_spool_ack_log_advance(sj_spool_ack_log *ledger, uint64_t watermark);

/* Writes the watermark to the disk. It must succeed before frames below the watermark are deleted.
 * Returns SJ_EIO if that fails. */
SJ_MUST_CHECK sj_status sj_spool_ack_log_sync(sj_spool_ack_log *ledger);

void sj_spool_ack_log_close(sj_spool_ack_log *ledger);

/* Deletes the ledger with the rest of the spool, `<directory>/acked`. */
void sj_spool_ack_log_remove(const char *directory);

#endif
