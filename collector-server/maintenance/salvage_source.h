/* Opens a damaged database for reading, without changing it. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_SALVAGE_SOURCE_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_SALVAGE_SOURCE_H

#include "collector-server/maintenance/part_file.h"

#include <sqlite3.h>
#include <stdbool.h>

typedef struct sj_salvage_source {
    sqlite3 *database;
    int version;         /* version of the schema */
    bool log_is_damaged; /* the log has committed changes that cannot be read */
    bool log_is_foreign; /* the log belongs to another file, and is not read */
    /* path of a copy of the database and its log; empty: the database has no log of its own, and is
     * read in place */
    char copy[SJ_PART_BYTES];
} sj_salvage_source;

/* Opens the database `path`. If it has a log, makes a copy of both beside `to` and opens the
 * copy, because reading a log changes the files.
 *
 * Returns SJ_ENOTFOUND if there is no file `path`. Returns SJ_ECORRUPT if the header or the
 * schema cannot be read, or it is not a Sojourn database. Returns SJ_EAGAIN if another process
 * has it open with a log. Returns SJ_EVERSION if a newer Sojourn wrote it, and SJ_EUNSUPPORTED
 * if a development version before 0.1.0 did; SJ_EFULL, SJ_EIO or SJ_ENOMEM. The caller closes
 * `*source` with sj_salvage_source_close, also after an error. Blocking. */
SJ_MUST_CHECK sj_status sj_salvage_source_open(const char *path, const char *to,
                                               sj_salvage_source *source, sj_error *error);

/* Closes the connection and removes the copy. */
void sj_salvage_source_close(sj_salvage_source *source);

#endif
