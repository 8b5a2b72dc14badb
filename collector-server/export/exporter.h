/* The interface of an exporter. Each exporter is one file that defines one constant descriptor;
 * exporters.c lists them. */
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
    const char *endings; /* endings of file names, separated by spaces; NULL: none */
    const char *summary;
    bool lists_calls; /* writes single calls; an exporter of sums (a profile) does not */
    bool is_whole;    /* cannot write a limited part (sj_call_part_is_limited) */
    /* Writes a part of a session. Memory does not grow with the number of calls. The caller checks
     * `output` for write errors. Fails with SJ_EIO and other errors. NULL: the format is a
     * folder. */
    sj_status (*write)(sqlite3 *database, const sj_call_part *part, FILE *output, sj_error *error);
    /* Writes the files of a format that is a folder into `folder`, which is empty, and checks them
     * for write errors. Otherwise like `write`, and NULL if the format is a file. */
    sj_status (*write_folder)(sqlite3 *database, const sj_call_part *part, const char *folder,
                              sj_error *error);
} sj_exporter;

/* All exporters, NULL-terminated. */
extern const sj_exporter *const sj_exporters[];

/* Returns the exporter with that name, or NULL. */
const sj_exporter *sj_exporter_find(const char *name);

/* Returns the exporter with that name, or NULL if its format is not a file. */
const sj_exporter *sj_exporter_find_file(const char *name);

/* Returns the length of the ending in `endings` that the name `file` ends with, or 0 if it ends
 * with none of them. */
size_t sj_exporter_ending(const sj_exporter *exporter, const char *file);

/* Returns the exporter with the longest ending that the name `file` ends with, or NULL. */
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
extern const sj_exporter sj_exporter_cobertura;
extern const sj_exporter sj_exporter_otlp;
extern const sj_exporter sj_exporter_otlp_proto;
extern const sj_exporter sj_exporter_firefox;
extern const sj_exporter sj_exporter_ctf;

#endif
