/* Sends to a cluster the owed sessions of a lab's database: sessions that have ended or changed
 * since they were sent, and marks of removals. There is no queue: a query over the database finds
 * the owed sessions. So the cluster may be unreachable for any time, and this process may be killed
 * at any moment. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_FORWARDER_H
#define SJ_COLLECTOR_SERVER_FORWARD_FORWARDER_H

#include "collector-server/forward/forward_target.h"

typedef struct sj_forwarder sj_forwarder;

typedef struct sj_forward_account {
    uint64_t owed;            /* sessions to send, and sessions to remove from the cluster */
    uint64_t unready;         /* sessions that are being recorded, are quarantined, or lack their
                               * sums */
    uint64_t forwarded;       /* sessions that the cluster has */
    uint64_t rows, bytes;     /* rows and bytes of the forwarded sessions */
    int64_t last_realtime_ns; /* when a session was last sent; 0: never */
    char lab[33];             /* the lab's id, as in the cluster */
} sj_forward_account;

/* Opens the database and creates the target, without connecting to it. Returns SJ_EINVAL for
 * wrong options, SJ_ENOMEM, SJ_EIO, or an error of sj_database_open. */
SJ_MUST_CHECK sj_status sj_forwarder_open(const char *database, const sj_forward_target_kind *kind,
                                          const sj_forward_options *options,
                                          sj_forwarder **forwarder, sj_error *error);

/* Sends the owed commands (only with `share` 0) and one batch of owed sessions. Writes the number
 * of sent sessions to `*sent`; if none are owed, it is 0 and the result is SJ_OK.
 *
 * If a batch fails because of its contents, sends single sessions. Returns the error of a session
 * that fails, and skips this session until the forwarder is opened again. So it does not block
 * other sessions. Blocks on the network. */
SJ_MUST_CHECK sj_status sj_forwarder_round(sj_forwarder *forwarder, uint64_t *sent,
                                           sj_error *error);

/* Counts the sessions. Does not connect to the cluster. Returns SJ_ECORRUPT if the lab has no id,
 * or an error of the database (sj_database_status). */
SJ_MUST_CHECK sj_status sj_forwarder_account(sj_forwarder *forwarder, sj_forward_account *account,
                                             sj_error *error);

/* Writes the tables that were omitted when a session was last sent, as a JSON array; "" if none
 * were omitted. If options->tables then changes, all sessions are owed again. Does not connect to
 * the cluster. Returns an error of the database (sj_database_status). */
SJ_MUST_CHECK sj_status sj_forwarder_left_out(sj_forwarder *forwarder, char *list, size_t capacity,
                                              sj_error *error);

/* Returns the forwarder's target, borrowed. */
sj_forward_target *sj_forwarder_target(sj_forwarder *forwarder);

void sj_forwarder_close(sj_forwarder *forwarder); /* NULL is allowed */

#endif
