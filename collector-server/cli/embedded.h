/* The embedded collector: receives frames and stores them in a database, inside this process, for
 * commands that run without a server. */
#ifndef SJ_COLLECTOR_SERVER_CLI_EMBEDDED_H
#define SJ_COLLECTOR_SERVER_CLI_EMBEDDED_H

#include "proto/base/error.h"

#include <limits.h>
#include <stdbool.h>

typedef struct sj_embedded sj_embedded;

/* Largest number of unacknowledged frames to the embedded collector. The window is large because a
 * commit costs much more than a frame. */
enum { SJ_EMBEDDED_WINDOW = 48 };

/* Opens or creates the database `path`. Starts threads that store the frames sent to the URL of
 * sj_embedded_url. Fails with the errors of sj_store_open and sj_ingest_start. */
SJ_MUST_CHECK sj_status sj_embedded_start(const char *path, sj_embedded **embedded,
                                          sj_error *error);
const char *sj_embedded_url(const sj_embedded *embedded);

/* Stores the queued frames and closes the database. If `discard` is true and sj_embedded_start
 * created the database, removes its files. `embedded` may be NULL. */
void sj_embedded_stop(sj_embedded *embedded, bool discard);

#endif
