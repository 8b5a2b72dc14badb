/* Rows as one block in ClickHouse's Native format: for each column its name, its type, and all of
 * its values. Nothing is copied: the block is a list of pieces. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_CLICKHOUSE_BLOCK_H
#define SJ_COLLECTOR_SERVER_FORWARD_CLICKHOUSE_BLOCK_H

#include "collector-server/forward/forward_tables.h"

enum { SJ_BLOCK_PIECES = 3 * (SJ_NATIVE_COLUMNS + 4) };

typedef struct sj_clickhouse_block {
    sj_byte_buffer heads;
    sj_slice pieces[SJ_BLOCK_PIECES];
    size_t count;
} sj_clickhouse_block;

/* sj_clickhouse_type is the type of a column there; a histogram has two. */
const char *sj_clickhouse_type(sj_forward_kind kind);

/* sj_clickhouse_block_make: `rows` are borrowed until sj_clickhouse_block_deinit. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_clickhouse_block_make(sj_clickhouse_block *block,
                                                 const sj_forward_table *table,
                                                 const sj_native_rows *rows);
void sj_clickhouse_block_deinit(sj_clickhouse_block *block);

#endif
