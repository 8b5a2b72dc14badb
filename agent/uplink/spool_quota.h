/* Limits the disk space that all spools of one root use together. */
#ifndef SJ_AGENT_UPLINK_SPOOL_QUOTA_H
#define SJ_AGENT_UPLINK_SPOOL_QUOTA_H

#include <stdint.h>

/* One spool's latest sums of the spools beside it. */
typedef struct sj_spool_quota {
    uint64_t budget_bytes; /* Limit of all spools together. 0: none. */
    uint64_t others_bytes; /* Bytes of the others at the latest sum. */
    uint64_t own_bytes;    /* Bytes of this one at that time. */
    int64_t summed_ns;     /* Monotonic time of the latest sum. 0: never. */
} sj_spool_quota;

/* Returns the size of the files in a directory, without those set aside. Returns 0 if it cannot be
 * read. */
uint64_t sj_spool_directory_bytes(const char *directory);

/* Returns how many bytes the spool in `directory`, which has `own_bytes`, may still add.
 * UINT64_MAX: no limit. It sums the others again after each segment's worth of growth, and every
 * second while space is scarce. So recorders that fill their spools at the same time exceed the
 * budget by at most `segment_bytes` each. */
uint64_t sj_spool_quota_left(sj_spool_quota *quota, const char *directory, uint64_t own_bytes,
                             uint64_t segment_bytes);

#endif
