/* The interface of an exporter: one file that defines one constant descriptor, listed in
 * exporters.c. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_EXPORTER_H
#define SJ_COLLECTOR_SERVER_EXPORT_EXPORTER_H

#include "collector-server/export/call_part.h"
#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct sj_exporter {
    const char *name;    /* as given to --format */
    const char *endings; /* of file names in this format: separated by spaces; NULL: none */
    const char *summary;
    bool lists_calls; /* true if it writes single calls, which a profile does not contain */
    bool is_whole;    /* true if it writes whole sessions only */
    /* Writes a part of a session as a stream: memory does not grow with the number of calls.
     * Returns SJ_EIO and other errors. */
    sj_status (*write)(sqlite3 *database, const sj_call_part *part, FILE *output, sj_error *error);
} sj_exporter;

/* All exporters, NULL-terminated. */
extern const sj_exporter *const sj_exporters[];

/* Returns the exporter with that name, or NULL. */
const sj_exporter *sj_exporter_find(const char *name);

/* Returns the length of the ending that makes `file` a name for this format, or 0. */
size_t sj_exporter_ending(const sj_exporter *exporter, const char *file);

/* Returns the exporter whose format the ending of a file's name tells, or NULL. */
const sj_exporter *sj_exporter_of_file(const char *file);

extern const sj_exporter sj_exporter_folded;
extern const sj_exporter sj_exporter_chrome_json;
extern const sj_exporter sj_exporter_function_txt;
extern const sj_exporter sj_exporter_report_txt;
extern const sj_exporter sj_exporter_arrow;
extern const sj_exporter sj_exporter_parquet;
extern const sj_exporter sj_exporter_perfetto;
extern const sj_exporter sj_exporter_speedscope;
extern const sj_exporter sj_exporter_pprof;
extern const sj_exporter sj_exporter_callgrind;
extern const sj_exporter sj_exporter_lcov;

#endif
