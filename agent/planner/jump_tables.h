/* Jump tables of switches, and the parts of functions that only they reach. */
#ifndef SJ_AGENT_PLANNER_JUMP_TABLES_H
#define SJ_AGENT_PLANNER_JUMP_TABLES_H

#include "agent/planner/targets.h"

enum { SJ_JUMP_TABLE_MOST = 1 << 16 }; /* maximum number of entries */

/* A possible jump table. Entry number i leads to base + (entry << shift). */
typedef struct sj_jump_table {
    uint64_t address;     /* address of the first entry */
    uint64_t base;        /* 0: entries are addresses */
    uint32_t range;       /* range whose code names the table */
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

/* Appends a candidate. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_jump_tables_add(sj_jump_tables *tables, const sj_jump_table *table);

/* Reads the tables that disassembled ranges name. All entries of a table decide whether it belongs
 * to a switch. Marks the targets of switches, sets `is_cold` of ranges that are parts of a
 * function, and adds them to `found->weak`. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_read_jump_tables(sj_module *module, sj_found_links *found);

/* True if the table of addresses at `address` belongs to a switch. Otherwise it is an array of
 * functions. */
bool sj_is_switch_table(const sj_module *module, uint64_t address);

/* True if a range has no name, and no code calls it or takes its address. */
bool sj_may_be_part(const sj_module *module, const sj_code_range *range);

#endif
