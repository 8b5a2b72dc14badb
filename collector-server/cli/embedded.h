/* The embedded collector: store and ingest in this process, for commands that need no server. */
#ifndef SJ_COLLECTOR_SERVER_CLI_EMBEDDED_H
#define SJ_COLLECTOR_SERVER_CLI_EMBEDDED_H

#include "proto/base/error.h"

#include <limits.h>
#include <stdbool.h>

typedef struct sj_embedded sj_embedded;

/* Frames under way to it at most: a commit costs much more than a frame. */
enum { SJ_EMBEDDED_WINDOW = 48 };

/* sj_embedded_start opens (or creates) the database `path` and collects into it at the URL of
 * sj_embedded_url. Starts threads. */
SJ_MUST_CHECK sj_status sj_embedded_start(const char *path, sj_embedded **embedded,
                                          sj_error *error);
const char *sj_embedded_url(const sj_embedded *embedded);

/* sj_embedded_stop stores what is queued and closes the database. `discard` removes a database that
 * this collector created. */
void sj_embedded_stop(sj_embedded *embedded, bool discard);

#endif
