/* The spool: frames on disk between the drain and the collector, one directory a session.
 *
 * `<spool>/<session hex>/00000001.frames ...` hold frames exactly as sent, appended; `acked` holds
 * how far the collector has acknowledged. A segment is deleted when all of it is acknowledged and
 * that is on disk; `announced` keeps what its other frames describe. Appends are write-ahead: a
 * frame is in the page cache (survives kill -9 of anyone) when sj_spool_append returns. Torn tails
 * are cut at the last whole frame when a spool is opened. One appender thread and one reader thread
 * may work at the same time. */
#ifndef SJ_AGENT_UPLINK_SPOOL_H
#define SJ_AGENT_UPLINK_SPOOL_H

#include "proto/base/error.h"
#include "proto/base/ids.h"
#include "proto/wire/frame.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sj_spool sj_spool;

typedef struct sj_spool_options {
    const char *directory; /* of this session; created (0700) when missing */
    /* Budgets and reserve are for blocks, profiles and reports; the small frames that describe
     * them, and the end of the session, are refused by a full disk only. */
    uint64_t budget_bytes;  /* unacknowledged bytes at most; 0: 4 GiB */
    uint64_t reserve_bytes; /* free disk space to leave; 0: 64 MiB, of a disk of less than 512 MiB
                               an eighth of it. With less, the spool holds 4 MiB at most, which is
                               enough while the collector acknowledges */
    uint32_t segment_bytes; /* a new file is begun after so many; 0: 4 MiB */
    /* of this and all spools beside it, acknowledged bytes that are still on disk included; 0: no
     * limit; see spool_room.h for how exactly it is kept */
    uint64_t root_budget_bytes;
} sj_spool_options;

/* sj_spool_open opens or creates a spool and locks it against other processes (SJ_EEXIST). A torn
 * tail is cut. Blocking: walks the headers of what is pending. SJ_EIO, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_spool_open(const sj_spool_options *options, sj_spool **spool,
                                      sj_error *error);

/* sj_spool_append adds one whole frame. SJ_EFULL: budget or disk; nothing was added. */
SJ_MUST_CHECK sj_status sj_spool_append(sj_spool *spool, sj_slice frame, sj_error *error);

/* sj_spool_end is where the next frame will be appended: it only grows, also from one opening to
 * the next, and a frame was appended if and only if it has grown. */
uint64_t sj_spool_end(sj_spool *spool);

/* sj_spool_was_used returns whether a whole frame was ever appended, acknowledged or not. */
bool sj_spool_was_used(sj_spool *spool);

/* sj_spool_next gives the next frame not yet given since the last rewind, into a buffer of the
 * spool; valid until `slots` further frames were given (the sender's window, at most 64).
 * SJ_EAGAIN: none now. SJ_ECORRUPT: a damaged frame was skipped and counted; call again.
 * SJ_EFULL: the disk has no room to account for a damaged frame; it is there to be given again. */
SJ_MUST_CHECK sj_status sj_spool_next(sj_spool *spool, sj_slice *frame, uint64_t *position);

/* sj_spool_acknowledge says that the frame at `position` is stored; in any order. */
SJ_MUST_CHECK sj_status sj_spool_acknowledge(sj_spool *spool, uint64_t position);

/* sj_spool_reject puts the frame at `position` aside (spool_aside.h), counts it and acknowledges
 * it: the collector said `why` it can never be stored. NULL: it was damaged on the disk. SJ_EFULL:
 * the disk has no room for the account; the frame is given again after a rewind. */
SJ_MUST_CHECK sj_status sj_spool_reject(sj_spool *spool, uint64_t position, const char *why);

/* A walk over the announcements (spool_announced.h) of all sessions in the spool. Parents come
 * before their children. */
typedef struct sj_spool_recall {
    bool is_brief; /* without modules and deep stacks, which are large */
    uint64_t at;   /* where the walk goes on; 0: it begins */
} sj_spool_recall;

/* sj_spool_recall_next gives the next announcement among the frames that were ever given to a
 * sender, acknowledged or not. The buffer lasts as that of sj_spool_next. Reader thread only.
 * While no frame is acknowledged a walk may go back to an earlier `at`. SJ_EAGAIN: that was all.
 * SJ_EIO, SJ_ENOMEM: the announcement cannot be read now; try again with the earlier `at`. */
SJ_MUST_CHECK sj_status sj_spool_recall_next(sj_spool *spool, sj_spool_recall *recall,
                                             sj_slice *frame);

/* sj_spool_rewind starts again at the first frame not acknowledged. */
void sj_spool_rewind(sj_spool *spool);

typedef struct sj_spool_counters {
    uint64_t appended_frames, appended_bytes;
    uint64_t acknowledged_frames;
    uint64_t pending_frames, pending_bytes;
    uint64_t refused_frames;  /* SJ_EFULL */
    uint64_t corrupt_frames;  /* damaged on disk; their bytes are kept in aside/ */
    uint64_t rejected_frames; /* see sj_spool_reject */
    uint64_t unkept_frames;   /* announcements that cannot be recalled: no room was left */
} sj_spool_counters;

void sj_spool_get_counters(sj_spool *spool, sj_spool_counters *counters);

/* sj_spool_close keeps the files; sj_spool_remove closes and deletes a fully acknowledged spool
 * (SJ_EAGAIN when something is pending; it then stays open). Files put aside are left. */
void sj_spool_close(sj_spool *spool);
SJ_MUST_CHECK sj_status sj_spool_remove(sj_spool *spool, sj_error *error);

#endif
