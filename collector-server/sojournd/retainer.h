/* The retention thread of sojournd: applies rules at regular intervals, beside the ingest. */
#ifndef SJ_COLLECTOR_SERVER_SOJOURND_RETAINER_H
#define SJ_COLLECTOR_SERVER_SOJOURND_RETAINER_H

#include "collector-server/maintenance/retention.h"

#include <stddef.h>

typedef struct sj_retainer sj_retainer;

/* Starts the thread. At once, and then every `period_s` seconds, the thread finishes interrupted
 * removals and applies `rules` (copied) on its own connection. It logs errors and continues. `path`
 * must exist. Returns SJ_ENOMEM, SJ_EIO, or an error of sj_database_open. */
SJ_MUST_CHECK sj_status sj_retainer_start(const char *path, const sj_retention_rule *rules,
                                          size_t rule_count, unsigned period_s,
                                          sj_retainer **retainer, sj_error *error);

/* Ends the thread after the current removal. NULL is allowed. Blocking. */
void sj_retainer_stop(sj_retainer *retainer);

#endif
