/* Limits the disk space that all spools of one root use together. */
#ifndef SJ_AGENT_UPLINK_SPOOL_QUOTA_H
#define SJ_AGENT_UPLINK_SPOOL_QUOTA_H

#include <stdint.h>

/* One spool's latest sums of the spools beside it. */
typedef struct sj_spool_quota {
    uint64_t budget_bytes; /* Limit of all spools together. 0: none. */
    uint64_t others_bytes; /* Bytes of the other spools at the time of the latest sum. */
    uint64_t own_bytes;    /* Bytes of this spool at that time. */
    int64_t summed_ns; /* Monotonic time at which the other spools were last summed. 0: never. */
} sj_spool_quota;

/* Returns the size of the files in a directory, without those set aside. Returns 0 if it cannot be
 * read. */
uint64_t sj_spool_directory_bytes(const char *directory);

/* Returns how many bytes the spool in `directory`, which has `own_bytes`, may still add.
 * UINT64_MAX: no limit. The function sums the other spools again after this spool has grown by
 * `segment_bytes`. It does so every second while less than `segment_bytes` of the budget is left.
 * So recorders that fill their spools at the same time exceed the budget by at most `segment_bytes`
 * each. */
uint64_t sj_spool_quota_left(sj_spool_quota *quota, const char *directory, uint64_t own_bytes,
                             uint64_t segment_bytes);

#endif
