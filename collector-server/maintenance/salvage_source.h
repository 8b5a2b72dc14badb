/* A damaged database, opened to be read: nothing of it is changed. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_SALVAGE_SOURCE_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_SALVAGE_SOURCE_H

#include "collector-server/maintenance/part_file.h"

#include <sqlite3.h>
#include <stdbool.h>

typedef struct sj_salvage_source {
    sqlite3 *database;
    int version;              /* of its schema */
    bool log_is_damaged;      /* the log has completed changes that cannot be read */
    char copy[SJ_PART_BYTES]; /* of the database and its log; empty: there is no log */
} sj_salvage_source;

/* sj_salvage_source_open opens the database `path`. If it has a log, it opens a copy of both, which
 * it makes beside `to`, because reading the log changes the files. SJ_ENOTFOUND; SJ_ECORRUPT: the
 * header or the schema cannot be read, or it is no database of Sojourn; SJ_EVERSION: a newer
 * Sojourn wrote it; SJ_EFULL, SJ_EIO, SJ_ENOMEM. The caller closes `*source` with
 * sj_salvage_source_close, also after an error. Blocking. */
SJ_MUST_CHECK sj_status sj_salvage_source_open(const char *path, const char *to,
                                               sj_salvage_source *source, sj_error *error);

/* sj_salvage_source_close closes the connection and removes the copy. */
void sj_salvage_source_close(sj_salvage_source *source);

#endif
