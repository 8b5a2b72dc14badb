/* Frames of a spool that no collector will have: `<spool>/<session>/aside/` keeps their bytes, and
 * `aside/account` counts them and holds what the collector said. The account outlives the spool, so
 * that `sojourn flush` and `doctor` name what was refused until somebody removes the folder. */
#ifndef SJ_AGENT_UPLINK_SPOOL_ASIDE_H
#define SJ_AGENT_UPLINK_SPOOL_ASIDE_H

#include "proto/base/cursor.h"
#include "proto/base/ids.h"

#include <stdbool.h>
#include <stdint.h>

/* Of a session, SJ_ASIDE_MOST_BYTES are kept; what comes after is counted only. */
enum { SJ_ASIDE_WHY_BYTES = 256, SJ_ASIDE_TEXT_BYTES = 2048, SJ_ASIDE_MOST_BYTES = 64 << 20 };

typedef struct sj_spool_aside {
    uint64_t refused_frames;      /* by the collector, for good */
    uint64_t damaged_frames;      /* on the disk of this device */
    uint64_t bytes;               /* that are kept */
    uint64_t unkept_frames;       /* of both: there was no room for their bytes */
    char why[SJ_ASIDE_WHY_BYTES]; /* what the collector said last */
} sj_spool_aside;

/* sj_spool_aside_keep_torn keeps the bytes that a crash left behind the last whole frame, as far as
 * there is room for them and for the account, which notes their number. One thread a spool. Blocks
 * for the disk. */
void sj_spool_aside_keep_torn(const char *directory, sj_spool_aside *aside, uint64_t position,
                              sj_slice bytes);

/* sj_spool_aside_take keeps the bytes of a frame that no collector will have, as far as there is
 * room, counts it in `aside` and stores the account. `why`: what the collector said; NULL: the
 * frame was damaged on the disk. Returns false, with nothing changed, if the disk did not take the
 * account: the frame is not accounted for. One thread a spool. Blocks for the disk. */
bool sj_spool_aside_take(const char *directory, sj_spool_aside *aside, uint64_t position,
                         sj_slice bytes, const char *why);

/* sj_spool_aside_read reads the account of the spool in `directory`, zeros if it has none; returns
 * whether frames are in it: it may have nothing but the bytes of a torn one. Any thread. */
bool sj_spool_aside_read(const char *directory, sj_spool_aside *aside);

/* sj_spool_aside_text says in one line what the account of `directory` has; returns `text`. */
const char *sj_spool_aside_text(const sj_spool_aside *aside, const char *directory,
                                char text[SJ_ASIDE_TEXT_BYTES]);

/* Called for each session with frames in its account; `directory` is its spool. */
typedef void (*sj_spool_aside_visit)(void *context, const char *session, const char *directory,
                                     const sj_spool_aside *aside);

/* sj_spool_aside_each visits those sessions of the folder `root`. Any thread. Blocks for the disk.
 */
void sj_spool_aside_each(const char *root, sj_spool_aside_visit visit, void *context);

#endif
