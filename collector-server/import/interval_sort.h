/* Sorts the whole calls of an import log by thread and time. Uses a bounded amount of memory: it
 * writes sorted runs to a nameless temporary file and merges them.
 *
 * On a thread that also has entries and exits, each entry and its exit become a whole call. A call
 * that has no exit gets SJ_INTERVAL_OPEN as its end. */
#ifndef SJ_COLLECTOR_SERVER_IMPORT_INTERVAL_SORT_H
#define SJ_COLLECTOR_SERVER_IMPORT_INTERVAL_SORT_H

#include "collector-server/import/import_log.h"

#define SJ_INTERVAL_OPEN INT64_MAX

typedef struct sj_interval {
    uint32_t thread;
    uint32_t function;
    int64_t start_ns, end_ns;
    uint64_t number; /* number in the file: decides between calls of the same times */
} sj_interval;

typedef sj_status (*sj_interval_receiver)(void *context, const sj_interval *interval);

/* Passes the whole calls to `receive`: by thread, then by start, the longer one first, then in the
 * order of the file. Temporary files are in the folder of the file `beside`. Returns SJ_EFULL,
 * SJ_EIO, SJ_ENOMEM, or an error of `receive`. */
SJ_MUST_CHECK sj_status sj_interval_sort(const sj_import_log *log, const char *beside,
                                         sj_interval_receiver receive, void *context);

#endif
