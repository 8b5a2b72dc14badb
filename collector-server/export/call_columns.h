/* The calls of a session as columns, some rows at a time: what columnar formats are written from.
 *
 * The columns are those of `calls` up to `flags`, the function's name, and entry and exit as real
 * time. Memory depends on the number of modules, not of calls. One thread, one read transaction. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_CALL_COLUMNS_H
#define SJ_COLLECTOR_SERVER_EXPORT_CALL_COLUMNS_H

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
    SJ_CALL_FUNCTION, /* the place of a name among those of the session */
    SJ_CALL_ENDING    /* the place in sj_call_endings */
} sj_call_column_kind;

typedef struct sj_call_column {
    const char *name;
    sj_call_column_kind kind;
    bool nullable;
} sj_call_column;

extern const sj_call_column sj_call_columns[SJ_CALL_COLUMNS];
extern const char *const sj_call_endings[SJ_CALL_ENDINGS];

/* Functions of consecutive ids, and their places. */
typedef struct sj_function_range {
    int64_t first_id;
    uint32_t count, first_place;
} sj_function_range;

typedef struct sj_call_reader {
    sqlite3 *database; /* borrowed */
    int64_t session_id, started_realtime_ns;
    sqlite3_stmt *calls, *name;
    bool in_transaction;
    sj_function_range *ranges; /* by rising id and place */
    size_t range_count, range_capacity;
    uint32_t function_count;
    uint64_t name_bytes; /* of all names, as UTF-8 */
    /* the batch: a NULL has the value 0 and no bit in `valid` (bit 0 of byte 0: the first row) */
    size_t rows;
    int64_t *values[SJ_CALL_COLUMNS];
    uint8_t *valid[SJ_CALL_COLUMNS];
    size_t null_count[SJ_CALL_COLUMNS];
} sj_call_reader;

/* sj_call_reader_open prepares; close it also when that failed. SJ_EIO, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_call_reader_open(sj_call_reader *reader, sqlite3 *database,
                                            int64_t session_id, sj_error *error);
void sj_call_reader_close(sj_call_reader *reader); /* safe on a zeroed one */

/* sj_call_reader_next reads up to SJ_CALL_BATCH_ROWS calls, in the order of their ids; none: that
 * was all. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_call_reader_next(sj_call_reader *reader, sj_error *error);

/* sj_call_reader_name gives the name at a place, borrowed until the next call; empty: there is none
 * any more. It may hold bytes that are no UTF-8. */
const char *sj_call_reader_name(sj_call_reader *reader, uint32_t place);

#endif
