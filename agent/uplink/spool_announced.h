/* The frames that a spool keeps though the collector acknowledged them: announcements, which
 * describe a session and which other frames refer to. A collector whose database was cut or
 * replaced by an older copy has lost them, and gets them again. The file `announced` in the spool's
 * folder holds them as they were sent. Used by spool.c only; one thread a spool, or the spool's
 * lock held. */
#ifndef SJ_AGENT_UPLINK_SPOOL_ANNOUNCED_H
#define SJ_AGENT_UPLINK_SPOOL_ANNOUNCED_H

#include "agent/uplink/spool_segment.h"
#include "proto/base/ids.h"

/* A spool keeps so much, or less where its owner has less room. A program can make deep stacks
 * without end: they are kept only while the file, whatever it holds, is at most half full. */
enum { SJ_ANNOUNCED_MOST_BYTES = 64 << 20, SJ_ANNOUNCED_DEEP_SHARE = 2 };

typedef struct sj_spool_announced {
    uint64_t bytes;         /* the file's size */
    uint64_t unkept_frames; /* announcements that found no room, since the spool was opened */
} sj_spool_announced;

/* The content of a frame's first bytes. */
typedef struct sj_spool_frame_kind {
    size_t frame_bytes; /* 0: this is no frame, and the other fields say nothing */
    uint16_t type;      /* sj_frame_type */
    bool is_announcement;
    bool is_deep_stack;
    bool has_session;
    sj_session_id session;
} sj_spool_frame_kind;

/* sj_spool_frame_kind_of reads the start of the frame at `offset`. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_spool_frame_kind_of(const sj_spool_segment *segment, uint64_t offset,
                                               sj_spool_frame_kind *kind);

/* sj_spool_announced_open finds the file of `directory`, if it has one, and cuts a torn end. Blocks
 * for the disk. A file that cannot be read counts as empty and is removed. */
void sj_spool_announced_open(const char *directory, sj_spool_announced *announced);

/* sj_spool_announced_read opens the file for reading as `segment`, which the caller closes.
 * SJ_ENOTFOUND: nothing was kept. */
SJ_MUST_CHECK sj_status sj_spool_announced_read(const char *directory,
                                                const sj_spool_announced *announced,
                                                sj_spool_segment *segment);

/* sj_spool_announced_keep copies the announcements of a segment that is about to be deleted. The
 * file grows to `most_bytes` at most, and to SJ_ANNOUNCED_MOST_BYTES. Those that find no room in
 * the file or on the disk are counted. Blocks for the disk. */
void sj_spool_announced_keep(const char *directory, sj_spool_announced *announced,
                             const sj_spool_segment *segment, uint64_t most_bytes);

/* sj_spool_announced_remove deletes the file. */
void sj_spool_announced_remove(const char *directory);

#endif
