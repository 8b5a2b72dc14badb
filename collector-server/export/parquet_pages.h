/* Makes the pages of a Parquet column chunk: encoded and compressed values, with page headers. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_PARQUET_PAGES_H
#define SJ_COLLECTOR_SERVER_EXPORT_PARQUET_PAGES_H

#include "collector-server/export/call_columns.h"
#include "collector-server/export/thrift_writer.h"

#include <zstd.h>

/* Constants of parquet.thrift. */
enum { SJ_PARQUET_INT32 = 1, SJ_PARQUET_INT64 = 2, SJ_PARQUET_BYTE_ARRAY = 6 };
enum {
    SJ_PARQUET_PLAIN = 0,
    SJ_PARQUET_RLE = 3,
    SJ_PARQUET_DELTA = 5,
    SJ_PARQUET_DICTIONARY = 8,
    SJ_PARQUET_ZSTD = 6
};

typedef struct sj_parquet_chunk {
    uint64_t dictionary_bytes; /* size of the dictionary page with its header; 0: no dictionary */
    uint64_t stored_bytes;     /* size of all pages with their headers */
    uint64_t plain_bytes;      /* stored_bytes if nothing were compressed */
    bool has_range;            /* `least` and `greatest`, of the column's values, are set */
    int64_t least, greatest;
} sj_parquet_chunk;

typedef struct sj_parquet_pages {
    ZSTD_CCtx *compressor;
    sj_byte_buffer out;        /* the chunk */
    sj_byte_buffer page, head; /* work buffers */
    int64_t *present;          /* the column's values without NULLs; capacity SJ_CALL_BATCH_ROWS */
    uint32_t *entries; /* by index of a name: its index in the dictionary + 1; 0: not in it */
    uint32_t *used;    /* indexes of the names in the dictionary */
} sj_parquet_pages;

/* Allocates memory for `function_count` names. Close `pages` even if this fails. Fails with
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_parquet_pages_open(sj_parquet_pages *pages, uint32_t function_count);
void sj_parquet_pages_close(sj_parquet_pages *pages);

/* Writes the chunk for a column of the reader's current batch to pages->out, replacing the previous
 * chunk. Writes its sizes and range to `chunk`. Fails with SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_parquet_pages_make(sj_parquet_pages *pages, sj_call_reader *calls,
                                              size_t column, sj_parquet_chunk *chunk);

#endif
