/* Reads the calls of a session as columns, in batches of rows, for the exporters of columnar
 * formats.
 *
 * The columns are the columns of `calls` up to `flags`, the function's name, and entry and exit in
 * real time (ns since the Unix epoch). Memory does not grow with the number of calls. Uses one read
 * transaction. Not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_CALL_COLUMNS_H
#define SJ_COLLECTOR_SERVER_EXPORT_CALL_COLUMNS_H

#include "collector-server/export/call_part.h"
#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_CALL_COLUMNS = 16, SJ_CALL_BATCH_ROWS = 1 << 17, SJ_CALL_ENDINGS = 4 };

typedef enum sj_call_column_kind {
    SJ_CALL_LONG,     /* 64 bits */
    SJ_CALL_INT,      /* 32 bits */
    SJ_CALL_TIME,     /* ns since the Unix epoch */
    SJ_CALL_FUNCTION, /* index of a name, for sj_call_reader_name */
    SJ_CALL_ENDING    /* index of a text in sj_call_endings */
} sj_call_column_kind;

typedef struct sj_call_column {
    const char *name;
    sj_call_column_kind kind;
    bool nullable;
} sj_call_column;

extern const sj_call_column sj_call_columns[SJ_CALL_COLUMNS];
extern const char *const sj_call_endings[SJ_CALL_ENDINGS];

/* Functions with consecutive ids. The name of the function first_id + i has the index
 * first_place + i. */
typedef struct sj_function_range {
    int64_t first_id;
    uint32_t count, first_place;
} sj_function_range;

typedef struct sj_call_reader {
    sqlite3 *database; /* borrowed */
    int64_t session_id, started_realtime_ns;
    sqlite3_stmt *calls, *name;
    sj_call_filter filter;
    bool in_transaction;
    sj_function_range *ranges; /* sorted by first_id, and so by first_place */
    size_t range_count, range_capacity;
    uint32_t function_count;
    uint64_t name_bytes; /* total size of all names after sj_utf8_clean */
    bool names_failed;   /* a name could not be read */
    /* The current batch of `rows` calls. Arrays are by column, and then by row. In `valid`, a row
     * has one bit (the first row: bit 0 of byte 0). A clear bit means NULL; its value is 0. */
    size_t rows;
    int64_t *values[SJ_CALL_COLUMNS];
    uint8_t *valid[SJ_CALL_COLUMNS];
    size_t null_count[SJ_CALL_COLUMNS];
} sj_call_reader;

/* Initializes a reader. Close the reader even if this fails. Fails with SJ_EIO or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_call_reader_open(sj_call_reader *reader, sqlite3 *database,
                                            const sj_call_part *part, sj_error *error);
void sj_call_reader_close(sj_call_reader *reader); /* safe on a zeroed structure */

/* Reads the next batch of up to SJ_CALL_BATCH_ROWS calls, sorted by id. reader->rows is 0 after
 * the last call. Fails with SJ_EIO, also if a name could not be read. */
SJ_MUST_CHECK sj_status sj_call_reader_next(sj_call_reader *reader, sj_error *error);

/* Returns the name with the index `place`, or "" if the function has no name or was removed. The
 * text is valid until the next call of this function. It may contain bytes that are not UTF-8. */
const char *sj_call_reader_name(sj_call_reader *reader, uint32_t place);

#endif
