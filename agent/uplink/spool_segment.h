/* One file of a spool: frames, one after the other. Used by spool.c only. */
#ifndef SJ_AGENT_UPLINK_SPOOL_SEGMENT_H
#define SJ_AGENT_UPLINK_SPOOL_SEGMENT_H

#include "proto/base/error.h"
#include "proto/wire/frame.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sj_spool_segment {
    uint32_t number;
    int file;
    uint64_t size; /* bytes of whole frames; what lies beyond was never given out */
    bool sealed;   /* no more appends: too long, or its tail could not be cut after an error */
} sj_spool_segment;

enum { SJ_SPOOL_SEGMENT_NAME_BYTES = 24 };

/* sj_spool_segment_name writes "00000001.frames". */
void sj_spool_segment_name(uint32_t number, char name[SJ_SPOOL_SEGMENT_NAME_BYTES]);

/* sj_spool_segment_number reads it back; 0 when `name` is no segment's name. */
uint32_t sj_spool_segment_number(const char *name);

/* sj_spool_segment_open opens the file `number` in `directory`; with `create` it must not exist
 * yet. SJ_EFULL when the disk has no room, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_spool_segment_open(const char *directory, uint32_t number, bool create,
                                              sj_spool_segment *segment, sj_error *error);

/* sj_spool_segment_append adds bytes; on failure the file is cut back, or sealed if that fails. */
SJ_MUST_CHECK sj_status sj_spool_segment_append(sj_spool_segment *segment, sj_slice bytes,
                                                sj_error *error);

/* sj_spool_segment_read fills `output` from `offset`; SJ_EIO, SJ_ECORRUPT when the file is short.
 */
SJ_MUST_CHECK sj_status sj_spool_segment_read(const sj_spool_segment *segment, uint64_t offset,
                                              uint8_t *output, size_t size);

/* sj_spool_frame_length reads the length of a frame from its first SJ_FRAME_PREFIX_BYTES;
 * 0 when they are not the beginning of a frame. */
size_t sj_spool_frame_length(const uint8_t prefix[SJ_FRAME_PREFIX_BYTES]);

/* sj_spool_find_frame returns the offset of the first sound frame in `bytes`, or bytes.size. */
size_t sj_spool_find_frame(sj_slice bytes);

/* sj_spool_segment_count_frames walks prefixes from `offset` to the end; damage counts as one. */
uint64_t sj_spool_segment_count_frames(const sj_spool_segment *segment, uint64_t offset);

void sj_spool_segment_close(sj_spool_segment *segment);

#endif
