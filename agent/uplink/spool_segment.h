/* One file of a spool: a sequence of frames. Only the spool uses it. */
#ifndef SJ_AGENT_UPLINK_SPOOL_SEGMENT_H
#define SJ_AGENT_UPLINK_SPOOL_SEGMENT_H

#include "proto/base/error.h"
#include "proto/wire/frame.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sj_spool_segment {
    uint32_t number;
    int file;
    uint64_t size; /* Bytes of whole frames. Bytes beyond were never given to a sender. */
    /* True if appends are over: it is too long, or its tail could not be cut after an error. */
    bool sealed;
} sj_spool_segment;

enum { SJ_SPOOL_SEGMENT_NAME_BYTES = 24 };

/* Writes "00000001.frames". */
void sj_spool_segment_name(uint32_t number, char name[SJ_SPOOL_SEGMENT_NAME_BYTES]);

/* Parses such a name. Returns 0 if `name` is not a segment's name. */
uint32_t sj_spool_segment_number(const char *name);

/* Opens the file `number` in `directory`. With `create` it must not exist yet. Returns SJ_EFULL if
 * the disk is full, or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_spool_segment_open(const char *directory, uint32_t number, bool create,
                                              sj_spool_segment *segment, sj_error *error);

/* Appends bytes. Returns SJ_EFULL if the disk is full, or SJ_EIO. If it fails, the file is cut
 * back, or sealed if it cannot be cut. */
SJ_MUST_CHECK sj_status sj_spool_segment_append(sj_spool_segment *segment, sj_slice bytes,
                                                sj_error *error);

/* Fills `output` from `offset`. Returns SJ_EIO, or SJ_ECORRUPT if the file is too short. */
SJ_MUST_CHECK sj_status sj_spool_segment_read(const sj_spool_segment *segment, uint64_t offset,
                                              uint8_t *output, size_t size);

/* Reads the length of a frame from its first SJ_FRAME_PREFIX_BYTES. Returns 0 if they are not the
 * beginning of a frame. */
size_t sj_spool_frame_length(const uint8_t prefix[SJ_FRAME_PREFIX_BYTES]);

/* Returns the offset of the first sound frame in `bytes`, or bytes.size if there is none. */
size_t sj_spool_find_frame(sj_slice bytes);

/* Counts the frames from `offset` to the end by their prefixes. Damage counts as one frame and ends
 * the count. */
uint64_t sj_spool_segment_count_frames(const sj_spool_segment *segment, uint64_t offset);

void sj_spool_segment_close(sj_spool_segment *segment);

#endif
