/* The sinks of an ingest: every frame goes to all of them, and is acknowledged when all have
 * committed it. The first is the one of record: whether a frame is good or a duplicate is its
 * verdict. The others are given what it accepts, duplicates too, since a crash may come between two
 * commits; of theirs only a failure that ends the batch counts. One thread. */
#ifndef SJ_COLLECTOR_SERVER_INGEST_SINKS_H
#define SJ_COLLECTOR_SERVER_INGEST_SINKS_H

#include "collector-server/store/sink.h"

enum { SJ_MOST_SINKS = 4 };

typedef struct sj_open_sink {
    const sj_sink_kind *kind;
    sj_sink *sink;
} sj_open_sink;

typedef struct sj_sinks {
    sj_open_sink list[SJ_MOST_SINKS];
    size_t count;
} sj_sinks;

/* sj_sinks_open opens one more; SJ_ELIMIT: there are enough, else as its kind's open. */
SJ_MUST_CHECK sj_status sj_sinks_open(sj_sinks *sinks, const sj_sink_kind *kind,
                                      const sj_sink_options *options, sj_error *error);
void sj_sinks_close(sj_sinks *sinks);

/* sj_sink_ends_batch returns whether a status of begin, apply or commit refuses the whole batch. */
bool sj_sink_ends_batch(sj_status status);

/* A batch, as in sink.h. After a begin that failed no batch is open; after an apply that ends the
 * batch sj_sinks_rollback is due; after a commit that failed the sinks that had committed before
 * report duplicates when the senders send again. */
SJ_MUST_CHECK sj_status sj_sinks_begin(const sj_sinks *sinks, sj_error *error);
SJ_MUST_CHECK sj_status sj_sinks_apply(const sj_sinks *sinks, const sj_frame_view *frame,
                                       const sj_sender *sender, bool *duplicate, sj_error *error);
SJ_MUST_CHECK sj_status sj_sinks_commit(const sj_sinks *sinks, sj_error *error);
void sj_sinks_rollback(const sj_sinks *sinks);

/* sj_sinks_check returns why the first of them that cannot would refuse a batch now; between
 * batches. */
SJ_MUST_CHECK sj_status sj_sinks_check(const sj_sinks *sinks, sj_error *error);

/* sj_sinks_maintain returns whether any of them has more to do. */
bool sj_sinks_maintain(const sj_sinks *sinks);
void sj_sinks_recover(const sj_sinks *sinks);

#endif
