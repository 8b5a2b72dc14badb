/* The retention thread of sojournd: applies rules now and then, beside the ingest. */
#ifndef SJ_COLLECTOR_SERVER_SOJOURND_RETAINER_H
#define SJ_COLLECTOR_SERVER_SOJOURND_RETAINER_H

#include "collector-server/maintenance/retention.h"

#include <stddef.h>

typedef struct sj_retainer sj_retainer;

/* sj_retainer_start finishes removals that were cut short and then applies `rules` (copied) every
 * `period_s` seconds on a connection of its own. `path` must exist. */
SJ_MUST_CHECK sj_status sj_retainer_start(const char *path, const sj_retention_rule *rules,
                                          size_t rule_count, unsigned period_s,
                                          sj_retainer **retainer, sj_error *error);

/* sj_retainer_stop ends the thread after the removal at hand. NULL is allowed. Blocking. */
void sj_retainer_stop(sj_retainer *retainer);

#endif
