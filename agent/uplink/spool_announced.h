/* Announcements are frames that describe a session and to which other frames refer. A spool keeps
 * them after they are acknowledged, because a collector may lose them: its database may be
 * truncated or replaced by an older copy. The uplink then sends them again. The file `announced` in
 * the spool's folder contains the announcements of deleted segments, as they were sent. Only
 * spool.c uses this. Not thread-safe: one thread per spool, or the spool's lock. */
#ifndef SJ_AGENT_UPLINK_SPOOL_ANNOUNCED_H
#define SJ_AGENT_UPLINK_SPOOL_ANNOUNCED_H

#include "agent/uplink/spool_segment.h"
#include "proto/base/ids.h"

/* Maximum size of the file, unless the caller sets a smaller one. A program may cause any number of
 * deep stacks, so these are kept only while the file is at most half full. */
enum { SJ_ANNOUNCED_MOST_BYTES = 64 << 20, SJ_ANNOUNCED_DEEP_SHARE = 2 };

typedef struct sj_spool_announced {
    uint64_t bytes;         /* Size of the file. */
    uint64_t unkept_frames; /* Announcements that did not fit, since the spool was opened. */
} sj_spool_announced;

/* The content of a frame's first bytes. */
typedef struct sj_spool_frame_kind {
    size_t frame_bytes; /* 0: there is no frame, and the other members are unset. */
    uint16_t type;      /* An sj_frame_type. */
    bool is_announcement;
    bool is_deep_stack;
    bool has_session;
    sj_session_id session;
} sj_spool_frame_kind;

/* Reads the start of the frame at `offset`. Returns SJ_EIO if that fails. */
SJ_MUST_CHECK sj_status sj_spool_frame_kind_of(const sj_spool_segment *segment, uint64_t offset,
                                               sj_spool_frame_kind *kind);

/* Reads the size of the file in `directory`, if it exists, and cuts off an incomplete last frame. A
 * file that cannot be read counts as empty and is removed. Blocks while it waits for the disk. */
void sj_spool_announced_open(const char *directory, sj_spool_announced *announced);

/* Opens the file for reading as `segment`, which the caller closes. Returns SJ_ENOTFOUND if no
 * announcement was kept. */
SJ_MUST_CHECK sj_status sj_spool_announced_read(const char *directory,
                                                const sj_spool_announced *announced,
                                                sj_spool_segment *segment);

/* Copies the announcements of a segment that is about to be deleted to the file. The file does not
 * grow beyond `most_bytes` and SJ_ANNOUNCED_MOST_BYTES. Announcements that do not fit in the file
 * or on the disk are counted. Blocks while it waits for the disk. */
void sj_spool_announced_keep(const char *directory, sj_spool_announced *announced,
                             const sj_spool_segment *segment, uint64_t most_bytes);

/* Deletes the file. */
void sj_spool_announced_remove(const char *directory);

#endif
