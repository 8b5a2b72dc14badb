/* Frames of a spool that a collector will never store. `<spool>/<session>/aside/` keeps their
 * bytes. `aside/account` contains their number and the collector's latest reason. The account stays
 * when the spool is removed: `sojourn flush` and `sojourn doctor` report the refused frames until
 * the user removes the folder. */
#ifndef SJ_AGENT_UPLINK_SPOOL_ASIDE_H
#define SJ_AGENT_UPLINK_SPOOL_ASIDE_H

#include "proto/base/cursor.h"
#include "proto/base/ids.h"

#include <stdbool.h>
#include <stdint.h>

/* A session keeps at most SJ_ASIDE_MOST_BYTES. Later frames are only counted. */
enum { SJ_ASIDE_WHY_BYTES = 256, SJ_ASIDE_TEXT_BYTES = 2048, SJ_ASIDE_MOST_BYTES = 64 << 20 };

typedef struct sj_spool_aside {
    uint64_t refused_frames; /* Permanently refused by the collector. */
    uint64_t damaged_frames; /* Damaged on the disk of this device. */
    uint64_t bytes;          /* Bytes that are kept. */
    /* Refused and damaged frames whose bytes were not kept for lack of space. */
    uint64_t unkept_frames;
    char why[SJ_ASIDE_WHY_BYTES]; /* The collector's latest reason. */
} sj_spool_aside;

/* Keeps the bytes that a crash left after the last whole frame, if they and the account fit on the
 * disk. The account counts these bytes, but no frame. Only one thread may use a spool's account.
 * Blocks while it waits for the disk. */
void sj_spool_aside_keep_torn(const char *directory, sj_spool_aside *aside, uint64_t position,
                              sj_slice bytes);

/* Keeps the bytes of a frame that a collector will never store, if they fit. Counts the frame in
 * `aside` and writes the account. `why` is the collector's reason. NULL: the frame was damaged on
 * the disk. Returns false, with nothing changed, if the account cannot be written. Only one thread
 * may use a spool's account. Blocks while it waits for the disk. */
bool sj_spool_aside_add(const char *directory, sj_spool_aside *aside, uint64_t position,
                        sj_slice bytes, const char *why);

/* Reads the account of the spool in `directory`, or zeros if there is none. Returns true if the
 * account counts at least one frame. An account with only the bytes of an incomplete frame counts
 * none. Thread-safe. */
bool sj_spool_aside_read(const char *directory, sj_spool_aside *aside);

/* Writes one line about the account of `directory`. Returns `text`. */
const char *sj_spool_aside_text(const sj_spool_aside *aside, const char *directory,
                                char text[SJ_ASIDE_TEXT_BYTES]);

/* Called for each session with frames in its account. `directory` is its spool. */
typedef void (*sj_spool_aside_visit)(void *context, const char *session, const char *directory,
                                     const sj_spool_aside *aside);

/* Visits the sessions in the folder `root` whose accounts count frames. Thread-safe. Blocks while
 * it waits for the disk. */
void sj_spool_aside_each(const char *root, sj_spool_aside_visit visit, void *context);

#endif
