/* How much room the spools of one root take together. */
#ifndef SJ_AGENT_UPLINK_SPOOL_QUOTA_H
#define SJ_AGENT_UPLINK_SPOOL_QUOTA_H

#include <stdint.h>

/* What one spool knows of the others beside it. */
typedef struct sj_spool_quota {
    uint64_t budget_bytes; /* of all together; 0: no limit */
    uint64_t others_bytes; /* as of the last look */
    uint64_t own_bytes;    /* of this one, then */
    int64_t looked_ns;     /* 0: never */
} sj_spool_quota;

/* sj_spool_directory_bytes sums the files in a directory, those put aside not among them; 0 when it
 * cannot be read. */
uint64_t sj_spool_directory_bytes(const char *directory);

/* sj_spool_quota_left returns what the spool in `directory`, which holds `own_bytes`, may still
 * add. It looks at the others when a segment's worth was added since, and every second while there
 * is little room; so that recorders that fill their spools at once pass the budget by at most
 * `segment_bytes` each. UINT64_MAX: no limit. */
uint64_t sj_spool_quota_left(sj_spool_quota *room, const char *directory, uint64_t own_bytes,
                             uint64_t segment_bytes);

#endif
