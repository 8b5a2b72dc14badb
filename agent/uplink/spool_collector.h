/* The collector of a session: a file beside its spool contains the address of the collector to
 * which all its frames are sent. The file is written before the first frame is sent, so that no two
 * collectors have parts of a session. */
#ifndef SJ_AGENT_UPLINK_SPOOL_COLLECTOR_H
#define SJ_AGENT_UPLINK_SPOOL_COLLECTOR_H

#include "proto/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { SJ_SPOOL_COLLECTOR_BYTES = 1024 };

/* Writes `url` to `<directory>/collector` (0600, on disk when it returns). Only the spool's owner
 * may call it. Blocking. Returns SJ_EIO if it fails, or SJ_ELIMIT if the address is too long. */
SJ_MUST_CHECK sj_status sj_spool_collector_keep(const char *directory, const char *url,
                                                sj_error *error);

/* Reads the address into `url`. Returns false if no collector was chosen yet. Blocking. */
bool sj_spool_collector_read(const char *directory, char url[SJ_SPOOL_COLLECTOR_BYTES]);

/* Deletes the file with the rest of the spool. */
void sj_spool_collector_remove(const char *directory);

#endif
