/* Finds jump tables of switches, and the cold parts of functions that only jump tables lead to. */
#ifndef SJ_AGENT_PLANNER_JUMP_TABLES_H
#define SJ_AGENT_PLANNER_JUMP_TABLES_H

#include "agent/planner/targets.h"

enum { SJ_JUMP_TABLE_MOST = 1 << 16 }; /* maximum number of entries */

/* A possible jump table. Entry number i leads to base + (entry << shift). */
typedef struct sj_jump_table {
    uint64_t address;     /* address of the first entry */
    uint64_t base;        /* 0: entries are addresses */
    uint32_t range;       /* range whose code contains the table's address */
    uint32_t known_count; /* number of entries that the code certainly uses; 0: unknown */
    uint32_t most_count;  /* maximum number of entries to read */
    uint8_t entry_bytes;
    uint8_t shift;
    bool is_signed;
} sj_jump_table;

struct sj_jump_tables {
    sj_jump_table *items;
    size_t count;
    size_t capacity;
};

/* Appends a table. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_jump_tables_add(sj_jump_tables *tables, const sj_jump_table *table);

/* Reads the possible jump tables of all ranges and decides by their entries which belong to
 * switches. Marks the targets of switches. Sets `is_cold` of ranges that turn out to be cold parts.
 * Links a switch's range with the other ranges that it leads to in `found->weak`. Returns SJ_ENOMEM
 * if out of memory. */
SJ_MUST_CHECK sj_status sj_read_jump_tables(sj_module *module, sj_found_links *found);

/* True if the table of addresses at `address` belongs to a switch. False for an array of
 * functions. */
bool sj_is_switch_table(const sj_module *module, uint64_t address);

/* True if a range has no name, and no code calls it or takes its address. */
bool sj_may_be_part(const sj_module *module, const sj_code_range *range);

#endif
