/* Retention: removes sessions by age and size.
 *
 * A rule is "SET=LIMIT". SET is as in query/session_set.h. LIMIT is an age (30d, 12h), or a maximum
 * size of all blocks of the set (50G, 500M; proto/base/units.h). The oldest sessions are removed
 * first. The age counts from the arrival of the last frame, by the collector's clock. Sessions that
 * are pinned, still recording or annotated are kept. */
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

/* Parses "SET=LIMIT". Returns SJ_EINVAL if `text` is not a rule. */
SJ_MUST_CHECK sj_status sj_retention_rule_read(const char *text, sj_retention_rule *rule,
                                               sj_error *error);

/* Called before a session is removed by a rule. Returns false to keep it. */
typedef bool (*sj_retention_verdict)(void *context, int64_t session_id, int64_t bytes);

/* Removes the sessions that exceed a rule's limit, if `verdict` agrees (NULL: always).
 * `*removed` is their number. `database` is as for sj_session_remove, with Sojourn's virtual
 * tables. The set may be empty. Returns SJ_EINVAL if the set cannot be parsed, SJ_ENOMEM, or an
 * error of sj_session_remove. Blocking. */
SJ_MUST_CHECK sj_status sj_retention_apply(sqlite3 *database, const sj_retention_rule *rule,
                                           sj_retention_verdict verdict, void *context,
                                           int64_t *removed, sj_error *error);

#endif
