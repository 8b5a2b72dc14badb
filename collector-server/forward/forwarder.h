/* Gives a cluster what it lacks of a lab's database: sessions that have ended, anew those that have
 * changed, and word of those that were removed. What is owed is a query over the database, so that
 * a cluster may be away for as long as it likes, and a lab be killed at any moment. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_FORWARDER_H
#define SJ_COLLECTOR_SERVER_FORWARD_FORWARDER_H

#include "collector-server/forward/forward_target.h"

typedef struct sj_forwarder sj_forwarder;

typedef struct sj_forward_account {
    uint64_t owed;            /* sessions, those to be removed there included */
    uint64_t unready;         /* sessions that are being recorded, or without their sums */
    uint64_t forwarded;       /* sessions that are there */
    uint64_t rows, bytes;     /* of them */
    int64_t last_realtime_ns; /* 0: never */
    char lab[33];             /* which lab this is, as the cluster names it */
} sj_forward_account;

/* sj_forwarder_open opens the database and the target; asks neither. */
SJ_MUST_CHECK sj_status sj_forwarder_open(const char *database, const sj_forward_target_kind *kind,
                                          const sj_forward_options *options,
                                          sj_forwarder **forwarder, sj_error *error);

/* sj_forwarder_round gives the next sessions, as many as are one batch; `*sent` is how many: 0, and
 * SJ_OK, when nothing is owed. A session that cannot be given alone holds up no other: it is
 * skipped until the forwarder is opened again, and the status is that of its failure. Blocking. */
SJ_MUST_CHECK sj_status sj_forwarder_round(sj_forwarder *forwarder, uint64_t *sent,
                                           sj_error *error);

/* sj_forwarder_account counts; needs no cluster. */
SJ_MUST_CHECK sj_status sj_forwarder_account(sj_forwarder *forwarder, sj_forward_account *account,
                                             sj_error *error);

/* sj_forwarder_left_out reads which tables the sessions that were given last were given without, as
 * a JSON array, "" for none: another choice makes all sessions owed. Needs no cluster. */
SJ_MUST_CHECK sj_status sj_forwarder_left_out(sj_forwarder *forwarder, char *list, size_t capacity,
                                              sj_error *error);

/* sj_forwarder_target is that of the forwarder, borrowed. */
sj_forward_target *sj_forwarder_target(sj_forwarder *forwarder);

void sj_forwarder_close(sj_forwarder *forwarder); /* NULL is allowed */

#endif
