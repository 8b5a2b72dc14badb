/* Rows of one table in columnar form: one buffer per column, values one after the other. Buffers
 * grow as needed. If memory runs out, sj_native_rows_failed returns true until the rows are
 * cleared. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_NATIVE_ROWS_H
#define SJ_COLLECTOR_SERVER_FORWARD_NATIVE_ROWS_H

#include "collector-server/forward/row_values.h"

enum { SJ_NATIVE_COLUMNS = 40, SJ_NATIVE_OWNER_BYTES = 32 };

typedef struct sj_native_column {
    sj_byte_buffer data;
    /* For nullable columns, one byte per value: 1 if it is NULL. For arrays, 8 bytes per value:
     * the index after its last element. */
    sj_byte_buffer extra;
} sj_native_column;

typedef struct sj_native_rows {
    sj_byte_buffer owners, versions, days; /* the values that every row begins with */
    sj_native_column columns[SJ_NATIVE_COLUMNS];
    /* the counts of all histograms; their bins are in the `data` of their column */
    sj_byte_buffer counts;
    uint64_t elements; /* total number of bins, which is also the number of counts */
    uint64_t rows;
} sj_native_rows;

void sj_native_rows_deinit(sj_native_rows *rows); /* zeroed rows are allowed */
void sj_native_rows_clear(sj_native_rows *rows);  /* keeps the memory */
size_t sj_native_rows_bytes(const sj_native_rows *rows);
/* True if memory ran out: the rows cannot be used. */
bool sj_native_rows_failed(const sj_native_rows *rows);

#endif
