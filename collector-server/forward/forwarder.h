/* Sends to a cluster what it lacks of a lab's database: sessions that have ended or changed, and
 * removals. A query over the database finds the owed sessions. A cluster may therefore be
 * unreachable for any time, and a lab may be killed at any moment. */
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
    int64_t last_realtime_ns; /* 0: never */
    char lab[33];             /* the lab's id, as in the cluster */
} sj_forward_account;

/* Opens the database and creates the target, without connecting to it. Returns SJ_EINVAL for
 * wrong options, SJ_ENOMEM, SJ_EIO, or an error of sj_database_open. */
SJ_MUST_CHECK sj_status sj_forwarder_open(const char *database, const sj_forward_target_kind *kind,
                                          const sj_forward_options *options,
                                          sj_forwarder **forwarder, sj_error *error);

/* Sends the owed commands and one batch of owed sessions. `*sent` is the number of sessions; it
 * is 0, with SJ_OK, if none are owed. A session that fails alone is skipped until the forwarder
 * is opened again, and its error is returned. It does not block other sessions. Blocks on the
 * network. */
SJ_MUST_CHECK sj_status sj_forwarder_round(sj_forwarder *forwarder, uint64_t *sent,
                                           sj_error *error);

/* Counts the sessions. Does not connect to the cluster. */
SJ_MUST_CHECK sj_status sj_forwarder_account(sj_forwarder *forwarder, sj_forward_account *account,
                                             sj_error *error);

/* Writes which tables were omitted when sessions were last sent, as a JSON array; "" if none were.
 * With another choice of tables, all sessions are owed again. Does not connect to the cluster. */
SJ_MUST_CHECK sj_status sj_forwarder_left_out(sj_forwarder *forwarder, char *list, size_t capacity,
                                              sj_error *error);

/* Returns the forwarder's target, borrowed. */
sj_forward_target *sj_forwarder_target(sj_forwarder *forwarder);

void sj_forwarder_close(sj_forwarder *forwarder); /* NULL is allowed */

#endif
