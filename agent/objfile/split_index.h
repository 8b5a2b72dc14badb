/* Reads the index of a package of split debug data (.debug_cu_index, .debug_tu_index): which part
 * of each section belongs to which unit. Version 2 is GNU's format for DWARF 4; version 5 is that
 * of DWARF 5. The bytes are untrusted. */
#ifndef SJ_AGENT_OBJFILE_SPLIT_INDEX_H
#define SJ_AGENT_OBJFILE_SPLIT_INDEX_H

#include "proto/base/cursor.h"

typedef enum sj_split_section {
    SJ_SPLIT_INFO = 0,
    SJ_SPLIT_TYPES = 1, /* DWARF 4 */
    SJ_SPLIT_ABBREV = 2,
    SJ_SPLIT_LOC = 3, /* DWARF 4 */
    SJ_SPLIT_LOCLISTS = 4,
    SJ_SPLIT_STR_OFFSETS = 5,
    SJ_SPLIT_RNGLISTS = 6,
    SJ_SPLIT_SECTIONS = 7
} sj_split_section;

typedef struct sj_split_part {
    uint32_t offset; /* in its section */
    uint32_t size;   /* 0: the unit does not have this part */
} sj_split_part;

typedef struct sj_split_unit {
    /* The id that a compilation unit's skeleton names, or the signature of a type unit. */
    uint64_t id;
    sj_split_part parts[SJ_SPLIT_SECTIONS];
} sj_split_unit;

typedef struct sj_split_index {
    sj_split_unit *units; /* sorted by id */
    size_t count;
    size_t capacity;
} sj_split_index;

/* Reads an index into a zeroed `*index`. Empty bytes give an index without units. Does not check
 * parts against their sections. Returns SJ_ECORRUPT, SJ_EVERSION, SJ_ELIMIT (more than 2^20 units)
 * or SJ_ENOMEM. Release with sj_split_index_deinit, on failure too. */
SJ_MUST_CHECK sj_status sj_split_index_read(sj_slice bytes, sj_split_index *index);
void sj_split_index_deinit(sj_split_index *index);

/* Returns the unit of that id, or NULL. */
const sj_split_unit *sj_split_index_find(const sj_split_index *index, uint64_t id);

#endif
