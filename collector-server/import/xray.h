/* Adds the records of XRay's files to an import log. Not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_IMPORT_XRAY_H
#define SJ_COLLECTOR_SERVER_IMPORT_XRAY_H

#include "collector-server/import/import_log.h"
#include "collector-server/import/source.h"

enum { SJ_XRAY_HEADER_BYTES = 32, SJ_XRAY_BASIC = 0, SJ_XRAY_FDR = 1 };

/* The kinds of records, as the files have them. */
typedef enum sj_xray_kind {
    SJ_XRAY_ENTER,
    SJ_XRAY_EXIT,
    SJ_XRAY_TAIL_EXIT, /* by a jump to another function */
    SJ_XRAY_ENTER_ARGUMENT
} sj_xray_kind;

typedef struct sj_xray {
    sj_source *source;
    sj_import_log *log;
    uint64_t at; /* offset of the record */
    uint64_t cycles_per_s;
    uint64_t first_cycles;
    bool has_first;
    bool has_numbers;     /* a function has no name */
    bool is_buffer_start; /* no record of the current buffer was added */
} sj_xray;

/* Finds or adds a thread of the log. Returns errors of sj_import_log_thread. */
SJ_MUST_CHECK sj_status sj_xray_thread(sj_xray *xray, int64_t pid, int64_t tid, uint32_t *thread);

/* Adds an entry or exit. An empty name becomes "function NUMBER". Returns SJ_ELIMIT if the time is
 * too large, and errors of the log. */
SJ_MUST_CHECK sj_status sj_xray_add(sj_xray *xray, uint32_t thread, sj_xray_kind kind,
                                    sj_slice name, uint32_t number, uint64_t cycles);

/* Reads the buffers of a flight data recorder's file, behind its header. Returns SJ_ECORRUPT with
 * the offset if a record is damaged, and errors of the log. */
SJ_MUST_CHECK sj_status sj_xray_read_fdr(sj_xray *xray, uint16_t version);

/* Reads the text of `llvm-xray convert`. Returns SJ_ECORRUPT with the offset if a line is damaged,
 * and errors of the log. */
SJ_MUST_CHECK sj_status sj_xray_read_text(sj_xray *xray);

#endif
