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

/* Returns ClickHouse's type of a column. Not for histograms, which have two columns. */
const char *sj_clickhouse_type(sj_forward_kind kind);

/* Makes the block of `rows`, which are borrowed until sj_clickhouse_block_deinit. Returns SJ_ENOMEM
 * on failure. */
SJ_MUST_CHECK sj_status sj_clickhouse_block_make(sj_clickhouse_block *block,
                                                 const sj_forward_table *table,
                                                 const sj_native_rows *rows);
void sj_clickhouse_block_deinit(sj_clickhouse_block *block);

#endif
