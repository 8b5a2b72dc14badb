/* Internal header of the spool: its state, and positions. The files of the spool share it:
 * spool_space.c, spool_segments.c, spool_given.c, spool_reading.c, spool_recall.c and spool.c.
 *
 * A position is `segment number << 32 | offset`. Positions only grow, so the ledger needs one
 * number, the watermark: all frames before it are acknowledged.
 *
 * `lock` protects everything except the buffers, which belong to the reader thread. Files are read
 * without it: only the reader thread closes them. The caller of a function below holds the lock,
 * unless its comment says otherwise. */
#ifndef SJ_AGENT_UPLINK_SPOOL_STATE_H
#define SJ_AGENT_UPLINK_SPOOL_STATE_H

#include "agent/uplink/spool.h"
#include "agent/uplink/spool_ack_log.h"
#include "agent/uplink/spool_announced.h"
#include "agent/uplink/spool_aside.h"
#include "agent/uplink/spool_quota.h"
#include "agent/uplink/spool_segment.h"

#include <pthread.h>

enum { SJ_SPOOL_BUFFERS = 64, SJ_SPOOL_PATH_BYTES = 4096 };

/* A frame (or damaged range) that the reader was given and that is not below the watermark yet. */
typedef struct given_frame {
    uint64_t position;
    uint32_t length;
    bool acknowledged;
} given_frame;

typedef struct frame_buffer {
    uint8_t *bytes;
    size_t capacity;
} frame_buffer;

struct sj_spool {
    pthread_mutex_t lock;
    char *directory;
    uint64_t budget_bytes;
    uint64_t reserve_bytes; /* 0: depends on the disk. */
    uint32_t segment_bytes;
    sj_spool_quota quota;
    sj_spool_ack_log ledger;
    sj_spool_segment *segments; /* Oldest first; appends go to the last. */
    size_t segment_count;
    size_t segment_capacity;
    uint32_t next_number; /* Number of the next segment. */
    given_frame *given;   /* In order of position, from the watermark on. */
    size_t given_count;
    size_t given_capacity;
    size_t cursor;    /* Next of `given` to give again. given_count: read on. */
    uint64_t read_at; /* Position of the next frame never given. */
    sj_spool_aside aside;
    sj_spool_announced announced;
    sj_spool_segment recalled; /* The file of `announced` while a walk reads it. Number 0. */
    sj_spool_counters counters;
    frame_buffer buffers[SJ_SPOOL_BUFFERS];
    unsigned next_buffer;
};

static inline uint64_t sj_spool_position(uint32_t number, uint64_t offset)
{
    return (uint64_t)number << 32 | offset;
}

static inline uint32_t sj_spool_position_number(uint64_t position)
{
    return (uint32_t)(position >> 32);
}

static inline uint64_t sj_spool_position_offset(uint64_t position)
{
    return position & UINT32_MAX;
}

/* Checks if a frame of `size` bytes fits into the budgets and the disk. Only frames with calls are
 * refused. Returns SJ_EFULL. */
SJ_MUST_CHECK sj_status sj_spool_check_space(sj_spool *spool, sj_slice frame, sj_error *error);

/* Returns the largest size of the file of announcements. The file stays until the session is over,
 * so it may use only a share of the space for calls. */
uint64_t sj_spool_most_announced(const sj_spool *spool);

/* Opens a segment and adds it to the list. Returns SJ_EIO or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_spool_add_segment(sj_spool *spool, uint32_t number, bool create,
                                             sj_error *error);

/* Opens the segments that contain unacknowledged frames, and removes the others. Returns SJ_EIO or
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_spool_load_segments(sj_spool *spool, sj_error *error);

/* Returns the segment of this number; NULL if there is none. */
sj_spool_segment *sj_spool_find_segment(sj_spool *spool, uint32_t number);

/* sj_spool_retire_segment keeps the announcements of an acknowledged segment, closes it and deletes
 * its file. sj_spool_unlink_segment only deletes the file. */
void sj_spool_retire_segment(sj_spool *spool, sj_spool_segment *segment);
void sj_spool_unlink_segment(const sj_spool *spool, uint32_t number);

/* Adds a frame or a damaged range to those that the reader was given. Returns SJ_ENOMEM if out of
 * memory. */
SJ_MUST_CHECK sj_status sj_spool_note_given(sj_spool *spool, uint64_t position, size_t length,
                                            bool acknowledged);

/* Raises the watermark over the acknowledged frames at the front of `given`, and deletes segments
 * that are wholly below it. Returns SJ_EIO if the ledger cannot be written. */
SJ_MUST_CHECK sj_status sj_spool_settle(sj_spool *spool);

/* Reads a frame into the next buffer. Does not need the lock. Returns SJ_ECORRUPT, SJ_EIO or
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_spool_load_frame(sj_spool *spool, const sj_spool_segment *segment,
                                            uint64_t offset, sj_slice *frame);

#endif
