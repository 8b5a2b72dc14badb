/* Makes a database with one session from an import log.
 *
 * The session is an ordinary one. Calls make a session of mode `trace`, samples one of mode
 * `profile`, whose calls are the samples. Its tags say that it was imported: `imported` (the
 * format) and `imported_from` (the file). Its notes, by "sojourn import", say what the file
 * lacks. */
#ifndef SJ_COLLECTOR_SERVER_IMPORT_IMPORT_WRITER_H
#define SJ_COLLECTOR_SERVER_IMPORT_IMPORT_WRITER_H

#include "collector-server/import/import_log.h"
#include "proto/base/ids.h"

#define SJ_IMPORT_AUTHOR "sojourn import"

typedef struct sj_import_origin {
    const char *format;
    const char *file;      /* name of the file */
    const char *name;      /* label of the session; "": none */
    sj_session_id session; /* depends on the file's bytes, so that a second import is refused */
} sj_import_origin;

typedef struct sj_import_sums {
    uint64_t calls;
    uint64_t samples;
    uint64_t threads;
    uint64_t functions;
} sj_import_sums;

/* Writes the database `path`, which must be missing or empty. After an error, the caller removes
 * it. Returns SJ_ECORRUPT if the log has neither calls nor samples, or if a function has no name.
 * Returns SJ_EUNSUPPORTED if the log has both calls and samples. Returns SJ_ELIMIT if it covers
 * more than 19 hours or has too many overlapping calls, SJ_EFULL, SJ_EIO or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_import_write(sj_import_log *log, const sj_import_origin *origin,
                                        const char *path, sj_import_sums *sums, sj_error *error);

#endif
