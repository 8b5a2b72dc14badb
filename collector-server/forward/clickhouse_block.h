/* Rows as one block in ClickHouse's Native format: for each column its name, its type, and all of
 * its values. The block is a list of pieces and does not copy the values. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_CLICKHOUSE_BLOCK_H
#define SJ_COLLECTOR_SERVER_FORWARD_CLICKHOUSE_BLOCK_H

#include "collector-server/forward/forward_tables.h"

enum { SJ_BLOCK_PIECES = 3 * (SJ_NATIVE_COLUMNS + 4) };

typedef struct sj_clickhouse_block {
    sj_byte_buffer headers;
    sj_slice pieces[SJ_BLOCK_PIECES];
    size_t count;
} sj_clickhouse_block;

/* Returns the name of the ClickHouse type of a column. `kind` is not SJ_FORWARD_HISTOGRAM, because
 * a histogram has two columns. */
const char *sj_clickhouse_type(sj_forward_kind kind);

/* Makes a block of `rows`. The block points into `rows`, which must exist unchanged until
 * sj_clickhouse_block_deinit. Returns SJ_ENOMEM on failure. */
SJ_MUST_CHECK sj_status sj_clickhouse_block_make(sj_clickhouse_block *block,
                                                 const sj_forward_table *table,
                                                 const sj_native_rows *rows);
void sj_clickhouse_block_deinit(sj_clickhouse_block *block);

#endif
