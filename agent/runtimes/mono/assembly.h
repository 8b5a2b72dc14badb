/* An assembly's file: a PE file with a CLI header and metadata tables (ECMA-335, partition II).
 *
 * The bytes are foreign. Everything that lies outside of them reads as 0 or as nothing: a damaged
 * file gives wrong names, never wrong memory. No state; any thread. */
#ifndef SJ_AGENT_RUNTIMES_MONO_ASSEMBLY_H
#define SJ_AGENT_RUNTIMES_MONO_ASSEMBLY_H

#include "proto/base/cursor.h"

enum {
    SJ_ASSEMBLY_TABLES = 0x2d,
    SJ_ASSEMBLY_COLUMNS = 9,
    SJ_ASSEMBLY_ID_BYTES = 16,
    SJ_PORTABLE_PDB_ID_BYTES = 20
};

/* Tables, by their numbers, and columns of them. */
enum {
    SJ_TABLE_MODULE = 0x00,
    SJ_TABLE_TYPE_REF = 0x01,
    SJ_TABLE_TYPE_DEF = 0x02,
    SJ_TABLE_METHOD_DEF = 0x06,
    SJ_TABLE_TYPE_SPEC = 0x1b,
    SJ_TABLE_ASSEMBLY = 0x20,
    SJ_TABLE_NESTED_CLASS = 0x29,
    SJ_TABLE_GENERIC_PARAM = 0x2a
};

typedef struct sj_assembly_table {
    uint32_t rows;
    uint32_t row_bytes;
    const uint8_t *first;
    uint8_t offsets[SJ_ASSEMBLY_COLUMNS]; /* of the columns in a row */
    uint8_t sizes[SJ_ASSEMBLY_COLUMNS];   /* 0: there is no such column */
} sj_assembly_table;

/* The streams of metadata; empty: there is none. */
typedef struct sj_metadata {
    sj_slice tables;
    sj_slice strings;
    sj_slice blobs;
    sj_slice guids;
    sj_slice pdb;
} sj_metadata;

typedef struct sj_assembly {
    sj_metadata metadata;
    sj_assembly_table tables[SJ_ASSEMBLY_TABLES];
} sj_assembly;

/* sj_metadata_open finds the streams in metadata (II.24.2.1), whose bytes must outlive them.
 * SJ_ECORRUPT: it is none, or it has no tables. */
SJ_MUST_CHECK sj_status sj_metadata_open(sj_slice bytes, sj_metadata *metadata);

/* sj_metadata_blob borrows bytes of the heap. */
sj_slice sj_metadata_blob(const sj_metadata *metadata, uint32_t index);

/* sj_assembly_open finds the tables and heaps in a file's bytes, which must outlive it.
 * SJ_ECORRUPT: it is no assembly, or its tables do not fit it. */
SJ_MUST_CHECK sj_status sj_assembly_open(sj_slice file, sj_assembly *assembly);

/* sj_assembly_cell reads a column of a row (from 1); 0 when there is none. */
uint32_t sj_assembly_cell(const sj_assembly *assembly, uint32_t table, uint32_t row,
                          uint32_t column);

/* sj_assembly_string borrows a NUL-terminated text of the heap, "" when there is none. */
const char *sj_assembly_string(const sj_assembly *assembly, uint32_t index);

/* sj_assembly_blob borrows bytes of the heap. */
sj_slice sj_assembly_blob(const sj_assembly *assembly, uint32_t index);

/* sj_assembly_id borrows the module id (MVID), NULL when there is none. */
const uint8_t *sj_assembly_id(const sj_assembly *assembly);

/* sj_assembly_pdb_id finds the id of the portable PDB that was made with an assembly: the GUID and
 * the time stamp of its debug directory. False: there is none. */
bool sj_assembly_pdb_id(sj_slice file, uint8_t id[SJ_PORTABLE_PDB_ID_BYTES]);

/* sj_assembly_embedded_pdb finds the portable PDB that an assembly's file holds itself, deflated;
 * empty: it holds none. `*size` is what it says of its size. */
sj_slice sj_assembly_embedded_pdb(sj_slice file, uint32_t *size);

/* sj_assembly_compressed reads a number as signatures hold it (II.23.2). */
uint32_t sj_assembly_compressed(sj_reader *reader);

#endif
