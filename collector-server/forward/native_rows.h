/* Rows of one table by columns, so that whoever takes them parses none: a buffer for each column
 * holds its values one after the other. Growing memory; a failure is kept until it is asked for. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_NATIVE_ROWS_H
#define SJ_COLLECTOR_SERVER_FORWARD_NATIVE_ROWS_H

#include "collector-server/forward/row_values.h"

enum { SJ_NATIVE_COLUMNS = 40, SJ_NATIVE_OWNER_BYTES = 32 };

typedef struct sj_native_column {
    sj_byte_buffer data;
    sj_byte_buffer extra; /* which values are NULL, a byte each; of arrays: their ends, 8 bytes */
} sj_native_column;

typedef struct sj_native_rows {
    sj_byte_buffer owners, versions, days; /* what every row begins with */
    sj_native_column columns[SJ_NATIVE_COLUMNS];
    sj_byte_buffer counts; /* of a histogram, beside its bins, which are its column's data */
    uint64_t elements;     /* of each */
    uint64_t rows;
} sj_native_rows;

void sj_native_rows_deinit(sj_native_rows *rows); /* safe on zeroed ones */
void sj_native_rows_clear(sj_native_rows *rows);  /* keeps the memory */
size_t sj_native_rows_bytes(const sj_native_rows *rows);
bool sj_native_rows_failed(const sj_native_rows *rows); /* no memory: they cannot be used */

#endif
