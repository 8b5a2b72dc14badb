/* The interface of an importer. Each importer is one file that defines one constant descriptor;
 * importers.c lists them. */
#ifndef SJ_COLLECTOR_SERVER_IMPORT_IMPORTER_H
#define SJ_COLLECTOR_SERVER_IMPORT_IMPORTER_H

#include "collector-server/import/import_log.h"
#include "collector-server/import/import_writer.h"
#include "collector-server/import/source.h"

#include <stdbool.h>

typedef struct sj_importer {
    const char *name; /* as given to --format */
    const char *summary;
    /* True if a file that begins with these bytes is likely of this format. NULL: no file is of
     * this format, or the user has to name the format. */
    bool (*recognizes)(sj_slice head);
    /* Reads a whole file into a log. Notes what the file lacks. Fails with the offset of the byte
     * that is wrong (sj_source_fail). NULL: the format is a folder. */
    sj_status (*read)(sj_source *source, sj_import_log *log);
    /* Reads a folder into a log, and sets a session id that depends on the folder's files. NULL:
     * the format is one file. */
    sj_status (*read_folder)(const char *folder, sj_import_log *log, sj_session_id *session,
                             sj_error *error);
} sj_importer;

/* All importers, NULL-terminated. */
extern const sj_importer *const sj_importers[];

/* Returns the importer with that name, or NULL. */
const sj_importer *sj_importer_find(const char *name);

typedef struct sj_import_request {
    const char *path;            /* the file or folder; "-": standard input */
    const sj_importer *importer; /* NULL: by the file's content */
    const char *name;            /* label of the session; NULL: the file's name */
    const char *database;        /* a new or empty file, which gets one session */
} sj_import_request;

/* Imports a file into a database. `*used` is the importer that read it. Returns SJ_ENOTFOUND if the
 * file does not exist, and SJ_EUNSUPPORTED if its format is not known. Returns SJ_ECORRUPT,
 * SJ_ELIMIT or SJ_EVERSION if its content cannot be imported, and errors of sj_import_write. After
 * an error, the caller removes the database. Blocks on files. Not thread-safe. */
SJ_MUST_CHECK sj_status sj_import_file(const sj_import_request *request, const sj_importer **used,
                                       sj_import_sums *sums, sj_error *error);

extern const sj_importer sj_importer_chrome_json;
extern const sj_importer sj_importer_speedscope;
extern const sj_importer sj_importer_folded;
extern const sj_importer sj_importer_perf_script;
extern const sj_importer sj_importer_uftrace;
extern const sj_importer sj_importer_callgrind;
extern const sj_importer sj_importer_pprof;
extern const sj_importer sj_importer_function_txt;
extern const sj_importer sj_importer_xray;
extern const sj_importer sj_importer_android_trace;
extern const sj_importer sj_importer_perfetto;
extern const sj_importer sj_importer_jfr;

#endif
