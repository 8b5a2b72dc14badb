/* The sinks of an ingest. Every frame goes to all of them, and is acknowledged after all have
 * committed it.
 *
 * The first is the sink of record: it decides whether a frame is valid or a duplicate. The others
 * get the frames that it accepts, including duplicates, because a crash may happen between two
 * commits. An error of another sink counts only if it ends the batch. Not thread-safe. */
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

/* Opens another sink. Returns SJ_ELIMIT if there are SJ_MOST_SINKS, or an error of its kind's
 * open. */
SJ_MUST_CHECK sj_status sj_sinks_open(sj_sinks *sinks, const sj_sink_kind *kind,
                                      const sj_sink_options *options, sj_error *error);
void sj_sinks_close(sj_sinks *sinks);

/* True if a status of begin, apply or commit refuses the whole batch. */
bool sj_sink_ends_batch(sj_status status);

/* A batch, as in sink.h. If begin fails, no batch is open. If apply ends the batch, call
 * sj_sinks_rollback. If commit fails, some sinks may have committed before; they report duplicates
 * when the senders send again. */
SJ_MUST_CHECK sj_status sj_sinks_begin(const sj_sinks *sinks, sj_error *error);
SJ_MUST_CHECK sj_status sj_sinks_apply(const sj_sinks *sinks, const sj_frame_view *frame,
                                       const sj_sender *sender, bool *duplicate, sj_error *error);
SJ_MUST_CHECK sj_status sj_sinks_commit(const sj_sinks *sinks, sj_error *error);
void sj_sinks_rollback(const sj_sinks *sinks);

/* Returns the error of the first sink that would refuse a batch now, or SJ_OK. Call it between
 * batches. */
SJ_MUST_CHECK sj_status sj_sinks_check(const sj_sinks *sinks, sj_error *error);

/* True if a sink has more maintenance to do. */
bool sj_sinks_maintain(const sj_sinks *sinks);
void sj_sinks_recover(const sj_sinks *sinks);

#endif
