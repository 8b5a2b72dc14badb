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
    /* Bytes of whole frames. Later bytes of the file belong to a failed append, and are never
     * sent. */
    uint64_t size;
    /* True if no frame may be appended: the file is long enough, or could not be cut after a failed
     * append. */
    bool sealed;
} sj_spool_segment;

enum { SJ_SPOOL_SEGMENT_NAME_BYTES = 24 };

/* Writes "00000001.frames". */
void sj_spool_segment_name(uint32_t number, char name[SJ_SPOOL_SEGMENT_NAME_BYTES]);

/* Parses such a name. Returns 0 if `name` is not a segment's name. */
uint32_t sj_spool_segment_number(const char *name);

/* Opens the file `number` in `directory`. If `create` is true, the file must not exist yet. Returns
 * SJ_EFULL if the disk is full, or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_spool_segment_open(const char *directory, uint32_t number, bool create,
                                              sj_spool_segment *segment, sj_error *error);

/* Appends bytes. Returns SJ_EFULL if the disk is full, or SJ_EIO. After an error, cuts the file
 * back to its old size. If that also fails, seals the segment. */
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

/* Counts the frames from `offset` to the end by their prefixes. A damaged frame counts, and ends
 * the count. */
uint64_t sj_spool_segment_count_frames(const sj_spool_segment *segment, uint64_t offset);

void sj_spool_segment_close(sj_spool_segment *segment);

#endif
