/* Retention: which sessions go, by age and by size.
 *
 * A rule is "SET=LIMIT": SET as in query/session_set.h, LIMIT an age (30d, 12h) or a size of blocks
 * (50G, 500M; proto/base/units.h) that the set may take together; the oldest go first. The age
 * counts from the last frame that came, by the collector's clock. Pinned
 * sessions, those that still record, and those with annotations are kept. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_RETENTION_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_RETENTION_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum { SJ_RETENTION_SET_BYTES = 256 };

typedef struct sj_retention_rule {
    char set[SJ_RETENTION_SET_BYTES];
    int64_t max_age_ns; /* 0: no limit */
    int64_t max_bytes;  /* 0: no limit */
} sj_retention_rule;

/* sj_retention_rule_read reads "SET=LIMIT". SJ_EINVAL. */
SJ_MUST_CHECK sj_status sj_retention_rule_read(const char *text, sj_retention_rule *rule,
                                               sj_error *error);

/* Called for each session that a rule ends, before it goes; false keeps it. */
typedef bool (*sj_retention_verdict)(void *context, int64_t session_id, int64_t bytes);

/* sj_retention_apply removes what a rule ends, through `verdict` (NULL: all of it); `*removed`
 * counts. `database` as for sj_session_remove, with Sojourn's tables. A set that holds no session
 * is fine. Blocking. */
SJ_MUST_CHECK sj_status sj_retention_apply(sqlite3 *database, const sj_retention_rule *rule,
                                           sj_retention_verdict verdict, void *context,
                                           int64_t *removed, sj_error *error);

#endif
