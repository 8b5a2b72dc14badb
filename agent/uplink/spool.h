/* The spool: frames on disk between the drain and the collector, one directory per session.
 *
 * `<spool>/<session hex>/00000001.frames ...` contain frames exactly as sent, appended. `acked`
 * stores how far the collector has acknowledged. A segment is deleted after all its frames are
 * acknowledged and that fact is on disk. `announced` keeps the announcements of deleted segments
 * (spool_announced.h). When sj_spool_append returns, the frame is in the page cache and survives
 * kill -9 of any process. When a spool is opened, it is cut after the last whole frame. One
 * appender thread and one reader thread may work at the same time. */
#ifndef SJ_AGENT_UPLINK_SPOOL_H
#define SJ_AGENT_UPLINK_SPOOL_H

#include "proto/base/error.h"
#include "proto/base/ids.h"
#include "proto/wire/frame.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sj_spool sj_spool;

typedef struct sj_spool_options {
    const char *directory; /* Directory of this session. Created (0700) if missing. */
    /* The budgets and the reserve apply to blocks, profiles and reports. Other frames are refused
     * only if the disk is full. */
    uint64_t budget_bytes; /* Maximum number of unacknowledged bytes. 0: 4 GiB. */
    /* Free disk space to leave. 0: 64 MiB, or an eighth of a disk of less than 512 MiB. If less
     * space is free, the spool contains at most 4 MiB, which is enough while the collector
     * acknowledges frames. */
    uint64_t reserve_bytes;
    uint32_t segment_bytes; /* Size after which a new file begins. 0: 4 MiB. */
    /* Limit of this spool and all spools beside it, including acknowledged bytes that are still on
     * disk. 0: no limit. spool_quota.h says by how much it may be exceeded. */
    uint64_t root_budget_bytes;
} sj_spool_options;

/* Opens or creates a spool, and locks it against other processes. Cuts off an incomplete last
 * frame. Returns SJ_EEXIST if another process has locked the spool, SJ_EIO or SJ_ENOMEM. Blocks
 * while it reads the headers of all pending frames. */
SJ_MUST_CHECK sj_status sj_spool_open(const sj_spool_options *options, sj_spool **spool,
                                      sj_error *error);

/* Appends one whole frame. Returns SJ_EFULL if the budget or the disk is full; then nothing was
 * appended. Returns SJ_EINVAL if `frame` is not one whole frame, SJ_EIO, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_spool_append(sj_spool *spool, sj_slice frame, sj_error *error);

/* Returns the position at which the next frame will be appended. The position only grows, also
 * after the spool is closed and opened again. A frame was appended if and only if the position has
 * grown. */
uint64_t sj_spool_end(sj_spool *spool);

/* True if a whole frame was ever appended, acknowledged or not. */
bool sj_spool_was_used(sj_spool *spool);

/* Returns the next unacknowledged frame that was not returned since the last rewind. The frame is
 * in one of 64 buffers, which this function and sj_spool_recall_next use in turn. So it is valid
 * until these functions have returned 64 further frames. Returns SJ_EAGAIN if there is no such
 * frame now. Returns SJ_ECORRUPT if a damaged frame was skipped and counted; call again. Returns
 * SJ_EFULL if the disk has no space to record a damaged frame; a later call tries again. */
SJ_MUST_CHECK sj_status sj_spool_next(sj_spool *spool, sj_slice *frame, uint64_t *position);

/* Marks the frame at `position` as stored by the collector. Any order is allowed. Returns SJ_EINVAL
 * if no frame was read at `position`, or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_spool_acknowledge(sj_spool *spool, uint64_t position);

/* Sets the frame at `position` aside (spool_aside.h), counts it and acknowledges it. `why` is the
 * collector's reason why the frame can never be stored. NULL: it was damaged on the disk. Returns
 * SJ_EFULL if the disk has no space for the account (spool_aside.h); sj_spool_next returns the
 * frame again after a rewind. */
SJ_MUST_CHECK sj_status sj_spool_reject(sj_spool *spool, uint64_t position, const char *why);

/* A walk over the announcements (spool_announced.h) of all sessions in the spool. Parents come
 * before their children. */
typedef struct sj_spool_recall {
    bool is_brief; /* True to skip modules and deep stacks, which are large. */
    uint64_t at;   /* Position of the walk. 0: its start. */
} sj_spool_recall;

/* Returns the next announcement among the frames that sj_spool_next has ever returned, acknowledged
 * or not. The frame is valid as long as one of sj_spool_next. Only the reader thread may call this
 * function. The caller may set `at` back to an earlier value if no frame was acknowledged
 * meanwhile. Returns SJ_EAGAIN at the end. Returns SJ_EIO or SJ_ENOMEM if the announcement cannot
 * be read now; retry with the earlier `at`. */
SJ_MUST_CHECK sj_status sj_spool_recall_next(sj_spool *spool, sj_spool_recall *recall,
                                             sj_slice *frame);

/* Makes sj_spool_next continue at the first frame that is not acknowledged. */
void sj_spool_rewind(sj_spool *spool);

typedef struct sj_spool_counters {
    uint64_t appended_frames, appended_bytes;
    uint64_t acknowledged_frames;
    uint64_t pending_frames, pending_bytes;
    uint64_t refused_frames;  /* Appends that returned SJ_EFULL. */
    uint64_t corrupt_frames;  /* Damaged on disk; their bytes are kept in aside/. */
    uint64_t rejected_frames; /* See sj_spool_reject. */
    /* Announcements that were not kept for lack of space, so sj_spool_recall_next cannot return
     * them. */
    uint64_t unkept_frames;
} sj_spool_counters;

void sj_spool_get_counters(sj_spool *spool, sj_spool_counters *counters);

/* sj_spool_close keeps the files. sj_spool_remove closes and deletes a fully acknowledged spool. It
 * returns SJ_EAGAIN if a frame is not acknowledged; the spool then stays open. It keeps the frames
 * set aside (spool_aside.h). */
void sj_spool_close(sj_spool *spool);
SJ_MUST_CHECK sj_status sj_spool_remove(sj_spool *spool, sj_error *error);

#endif
