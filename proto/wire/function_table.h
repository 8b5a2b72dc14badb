/* The function table of one module, the payload of a MODULE frame:
 *
 *   varint version | varint count | columns, one after the other:
 *   offsets: `count` zigzag varints, each minus the previous offset (the first: minus 0) |
 *   sizes: `count` varints | techniques, skips, sources: `count` bytes each |
 *   names: `count` NUL-terminated strings (mangled; empty if unknown) |
 *   version 2 only: fingerprints: u64 (little-endian) for each function without a name
 *
 * A table without fingerprints has version 1, which older collectors can read. In the frame the
 * table is compressed with zstd; Module.raw_bytes is its size before compression. */
#ifndef SJ_PROTO_WIRE_FUNCTION_TABLE_H
#define SJ_PROTO_WIRE_FUNCTION_TABLE_H

#include "proto/base/cursor.h"
#include "proto/base/status.h"

enum { SJ_FUNCTION_TABLE_VERSION = 2, SJ_FUNCTION_TABLE_MAX_BYTES = 64 * 1024 * 1024 };

typedef struct sj_function_entry {
    uint64_t offset; /* offset of the entry in the module */
    uint32_t size_bytes;
    uint8_t technique; /* sj_technique */
    uint8_t skip;      /* sj_skip */
    uint8_t source;    /* sj_symbol_source */
    const char *name;  /* NUL-terminated, borrowed */
    /* hash of the code if the function has no name; 0: unknown, or it has a name */
    uint64_t fingerprint;
} sj_function_entry;

typedef struct sj_function_table {
    uint64_t count;
    uint64_t next;
    uint64_t last_offset;
    sj_reader offsets, sizes, techniques, skips, sources, names, fingerprints;
    bool has_fingerprints;
} sj_function_table;

/* Checks a whole uncompressed table. After that, `count` calls of sj_function_table_next cannot
 * fail. `raw` is borrowed while `table` is in use. Does not allocate. Errors: SJ_ECORRUPT,
 * SJ_EVERSION. */
SJ_MUST_CHECK sj_status sj_function_table_open(sj_slice raw, sj_function_table *table);

/* Reads the next entry; its name is borrowed. Returns false after the last entry. */
bool sj_function_table_next(sj_function_table *table, sj_function_entry *entry);

/* Writes `count` entries into `output` and sets `*size_bytes`. A capacity of
 * sj_function_table_bound always suffices. Errors: SJ_ELIMIT. */
SJ_MUST_CHECK sj_status sj_function_table_write(const sj_function_entry *entries, size_t count,
                                                uint8_t *output, size_t capacity,
                                                size_t *size_bytes);
size_t sj_function_table_bound(const sj_function_entry *entries, size_t count);

#endif
