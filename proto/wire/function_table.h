/* The function table: payload of a MODULE frame, the functions of one module.
 *
 *   varint version | varint count | columns, one after the other:
 *   offsets: zigzag deltas | sizes: varints | technique, skip, source: count bytes each |
 *   names: count NUL-terminated strings (mangled; empty when unknown) |
 *   version 2: fingerprints: 8 bytes for each function without a name
 * A table without fingerprints is written as version 1, which older collectors read;
 * all of it zstd-compressed in the frame (`raw_bytes` in Module). */
#ifndef SJ_PROTO_WIRE_FUNCTION_TABLE_H
#define SJ_PROTO_WIRE_FUNCTION_TABLE_H

#include "proto/base/cursor.h"
#include "proto/base/status.h"

enum { SJ_FUNCTION_TABLE_VERSION = 2, SJ_FUNCTION_TABLE_MAX_BYTES = 64 * 1024 * 1024 };

typedef struct sj_function_entry {
    uint64_t offset; /* module offset of the entry */
    uint32_t size_bytes;
    uint8_t technique;    /* sj_technique */
    uint8_t skip;         /* sj_skip */
    uint8_t source;       /* sj_symbol_source */
    const char *name;     /* NUL-terminated, borrowed */
    uint64_t fingerprint; /* of the code of a function without a name; 0: unknown, or has a name */
} sj_function_entry;

typedef struct sj_function_table {
    uint64_t count;
    uint64_t next;
    uint64_t last_offset;
    sj_reader offsets, sizes, techniques, skips, sources, names, fingerprints;
    bool has_fingerprints;
} sj_function_table;

/* sj_function_table_open checks a raw (uncompressed) table as a whole, so that the following
 * `count` calls of sj_function_table_next cannot fail. SJ_ECORRUPT, SJ_EVERSION. No allocation. */
SJ_MUST_CHECK sj_status sj_function_table_open(sj_slice raw, sj_function_table *table);

/* sj_function_table_next gives the next entry; false after the last. */
bool sj_function_table_next(sj_function_table *table, sj_function_entry *entry);

/* sj_function_table_write writes `count` entries; `output` must hold sj_function_table_bound. */
SJ_MUST_CHECK sj_status sj_function_table_write(const sj_function_entry *entries, size_t count,
                                                uint8_t *output, size_t capacity,
                                                size_t *size_bytes);
size_t sj_function_table_bound(const sj_function_entry *entries, size_t count);

#endif
