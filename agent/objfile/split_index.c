/* Design notes
 *
 * This code does not use the index's hash table for searches, because a damaged table could make a
 * search endless. It reads all slots and sorts the units by id. */
#include "agent/objfile/split_index.h"

#include "proto/base/array.h"

#include <stdlib.h>

enum {
    GNU_VERSION = 2,
    DWARF_VERSION = 5,
    MOST_COLUMNS = 16,
    MOST_UNITS = 1 << 20,
    ID_BYTES = 8,
    CELL_BYTES = 4
};

/* The tables of an index. Ids are eight bytes each, all other cells four bytes. */
typedef struct index_tables {
    uint32_t column_count;
    uint32_t unit_count;
    uint32_t slot_count;
    sj_reader ids;  /* one for each slot */
    sj_reader rows; /* one row number for each slot, from 1; 0: the slot is free */
    sj_slice offsets;
    sj_slice sizes;
    /* sj_split_section of each column; SJ_SPLIT_SECTIONS: a section that is not needed */
    uint8_t sections[MOST_COLUMNS];
} index_tables;

/* Returns the sj_split_section of a column's number (DW_SECT_*), or SJ_SPLIT_SECTIONS for a section
 * that is not needed. */
static uint8_t section_of(uint32_t number, bool is_gnu)
{
    switch (number) {
    case 1:
        return SJ_SPLIT_INFO;
    case 2:
        return is_gnu ? SJ_SPLIT_TYPES : SJ_SPLIT_SECTIONS;
    case 3:
        return SJ_SPLIT_ABBREV;
    case 5:
        return is_gnu ? SJ_SPLIT_LOC : SJ_SPLIT_LOCLISTS;
    case 6:
        return SJ_SPLIT_STR_OFFSETS;
    case 8:
        return is_gnu ? SJ_SPLIT_SECTIONS : SJ_SPLIT_RNGLISTS;
    default: /* lines and macros */
        return SJ_SPLIT_SECTIONS;
    }
}

/* Returns the next `count` elements, or an empty slice if there are fewer. */
static sj_slice read_slice(sj_reader *reader, uint64_t count, size_t element_bytes)
{
    const size_t size = count * element_bytes; /* at most 2^32 slots, or 2^24 cells */
    const uint8_t *data = sj_read_bytes(reader, size);
    return (sj_slice){.data = data, .size = data != NULL ? size : 0};
}

static sj_status read_tables(sj_slice bytes, index_tables *tables)
{
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    const uint16_t version = sj_read_u16(&reader);
    (void)sj_read_u16(&reader); /* padding, or the upper half of GNU's version */
    tables->column_count = sj_read_u32(&reader);
    tables->unit_count = sj_read_u32(&reader);
    tables->slot_count = sj_read_u32(&reader);
    if (reader.bad) {
        return SJ_ECORRUPT;
    }
    if (version != GNU_VERSION && version != DWARF_VERSION) {
        return SJ_EVERSION;
    }
    if (tables->unit_count > MOST_UNITS) {
        return SJ_ELIMIT;
    }
    if (tables->unit_count == 0) { /* an empty index may have no tables */
        tables->slot_count = 0;
        return SJ_OK;
    }
    if (tables->column_count > MOST_COLUMNS || tables->unit_count > tables->slot_count) {
        return SJ_ECORRUPT;
    }
    const sj_slice ids = read_slice(&reader, tables->slot_count, ID_BYTES);
    const sj_slice rows = read_slice(&reader, tables->slot_count, CELL_BYTES);
    const uint64_t cells = (uint64_t)tables->unit_count * tables->column_count;
    tables->ids = sj_reader_of(ids.data, ids.size);
    tables->rows = sj_reader_of(rows.data, rows.size);
    for (uint32_t i = 0; i < tables->column_count; i++) {
        tables->sections[i] = section_of(sj_read_u32(&reader), version == GNU_VERSION);
    }
    tables->offsets = read_slice(&reader, cells, CELL_BYTES);
    tables->sizes = read_slice(&reader, cells, CELL_BYTES);
    return reader.bad ? SJ_ECORRUPT : SJ_OK;
}

static void read_parts(const index_tables *tables, uint32_t row, sj_split_unit *unit)
{
    const size_t row_bytes = (size_t)tables->column_count * CELL_BYTES;
    sj_reader offsets = sj_reader_of(tables->offsets.data + row * row_bytes, row_bytes);
    sj_reader sizes = sj_reader_of(tables->sizes.data + row * row_bytes, row_bytes);
    for (uint32_t i = 0; i < tables->column_count; i++) {
        const sj_split_part part = {.offset = sj_read_u32(&offsets), .size = sj_read_u32(&sizes)};
        if (tables->sections[i] != SJ_SPLIT_SECTIONS) {
            unit->parts[tables->sections[i]] = part;
        }
    }
}

static sj_status read_units(index_tables *tables, sj_split_index *index)
{
    for (uint32_t i = 0; i < tables->slot_count; i++) {
        const uint64_t id = sj_read_u64(&tables->ids);
        const uint32_t row = sj_read_u32(&tables->rows);
        if (row == 0) {
            continue;
        }
        if (row > tables->unit_count || index->count == tables->unit_count) {
            return SJ_ECORRUPT;
        }
        SJ_TRY(sj_array_reserve(&index->units, &index->capacity, index->count, 1,
                                sizeof(*index->units)));
        sj_split_unit *unit = &index->units[index->count++];
        *unit = (sj_split_unit){.id = id};
        read_parts(tables, row - 1, unit);
    }
    return SJ_OK;
}

static int compare_units(const void *left, const void *right)
{
    const sj_split_unit *a = left;
    const sj_split_unit *b = right;
    return (a->id > b->id) - (a->id < b->id);
}

sj_status sj_split_index_read(sj_slice bytes, sj_split_index *index)
{
    index_tables tables = {0};
    if (bytes.size == 0) {
        return SJ_OK;
    }
    SJ_TRY(read_tables(bytes, &tables));
    SJ_TRY(read_units(&tables, index));
    if (index->count != 0) {
        qsort(index->units, index->count, sizeof(*index->units), compare_units);
    }
    return SJ_OK;
}

void sj_split_index_deinit(sj_split_index *index)
{
    free(index->units);
    *index = (sj_split_index){0};
}

const sj_split_unit *sj_split_index_find(const sj_split_index *index, uint64_t id)
{
    const sj_split_unit wanted = {.id = id};
    return index->count != 0
               ? bsearch(&wanted, index->units, index->count, sizeof(wanted), compare_units)
               : NULL;
}
