/* Reads the file of an assembly: a PE file with a CLI header and metadata tables (ECMA-335,
 * partition II).
 *
 * The bytes are not trusted. A read outside of them gives 0 or an empty result, so a damaged file
 * gives wrong names but no access to other memory. Thread-safe: there is no state. */
#ifndef SJ_AGENT_RUNTIMES_MONO_ASSEMBLY_H
#define SJ_AGENT_RUNTIMES_MONO_ASSEMBLY_H

#include "proto/base/cursor.h"

enum {
    SJ_ASSEMBLY_TABLES = 0x2d,
    SJ_ASSEMBLY_COLUMNS = 9,
    SJ_ASSEMBLY_ID_BYTES = 16,
    SJ_PORTABLE_PDB_ID_BYTES = 20
};

/* Numbers of tables (II.22). Columns are numbered from 0, in the order of the standard. */
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
    uint8_t offsets[SJ_ASSEMBLY_COLUMNS]; /* Offsets of the columns in a row. */
    uint8_t sizes[SJ_ASSEMBLY_COLUMNS];   /* 0: there is no such column. */
} sj_assembly_table;

/* The streams of metadata. A missing stream is empty. */
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

/* Finds the streams in metadata (II.24.2.1). The bytes must outlive `*metadata`. Returns
 * SJ_ECORRUPT if the bytes are not metadata or have no tables. */
SJ_MUST_CHECK sj_status sj_metadata_open(sj_slice bytes, sj_metadata *metadata);

/* Returns the entry at `index` of the #Blob heap, borrowed. The slice is empty if the heap has no
 * such entry. */
sj_slice sj_metadata_blob(const sj_metadata *metadata, uint32_t index);

/* Finds the tables and heaps in a file's bytes, which must outlive `*assembly`. Returns SJ_ECORRUPT
 * if the file is not an assembly, or if its tables exceed it. */
SJ_MUST_CHECK sj_status sj_assembly_open(sj_slice file, sj_assembly *assembly);

/* Returns the value of a cell, or 0 if the table has no such cell. Rows are numbered from 1.
 * `table` must be below SJ_ASSEMBLY_TABLES and `column` below SJ_ASSEMBLY_COLUMNS. */
uint32_t sj_assembly_cell(const sj_assembly *assembly, uint32_t table, uint32_t row,
                          uint32_t column);

/* Returns the text at `index` of the #Strings heap, borrowed, or "" if the heap has no such
 * text. */
const char *sj_assembly_string(const sj_assembly *assembly, uint32_t index);

/* Like sj_metadata_blob, for the metadata of an assembly. */
sj_slice sj_assembly_blob(const sj_assembly *assembly, uint32_t index);

/* Returns the SJ_ASSEMBLY_ID_BYTES of the module id (MVID), borrowed. Returns NULL if the assembly
 * has none. */
const uint8_t *sj_assembly_id(const sj_assembly *assembly);

/* Writes the id of the portable PDB that was built with an assembly: the GUID and the time stamp in
 * the assembly's debug directory. Returns false if the directory has no such entry. */
bool sj_assembly_pdb_id(sj_slice file, uint8_t id[SJ_PORTABLE_PDB_ID_BYTES]);

/* Returns the compressed (deflate) portable PDB inside an assembly's file, borrowed. Returns an
 * empty slice if the file contains none. `*size` is the uncompressed size that the file states. */
sj_slice sj_assembly_embedded_pdb(sj_slice file, uint32_t *size);

/* Reads an unsigned number in the compressed form of signatures (II.23.2). If bytes are
 * missing, sets `reader->bad` and returns a number without meaning. */
uint32_t sj_assembly_compressed(sj_reader *reader);

#endif
