/* The jump tables of switches, and the parts of functions that only they lead to. */
#ifndef SJ_AGENT_PLANNER_JUMP_TABLES_H
#define SJ_AGENT_PLANNER_JUMP_TABLES_H

#include "agent/planner/targets.h"

enum { SJ_JUMP_TABLE_MOST = 1 << 16 }; /* entries */

/* A place that may be a jump table. Entry number i leads to base + (entry << shift). */
typedef struct sj_jump_table {
    uint64_t address;     /* of the first entry */
    uint64_t base;        /* 0: entries are addresses */
    uint32_t range;       /* whose code names the table */
    uint32_t known_count; /* so many entries the code is known to use; 0: not known */
    uint32_t most_count;  /* no more than these are read */
    uint8_t entry_bytes;
    uint8_t shift;
    bool is_signed;
} sj_jump_table;

struct sj_jump_tables {
    sj_jump_table *items;
    size_t count;
    size_t capacity;
};

/* sj_jump_tables_add appends a candidate. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_jump_tables_add(sj_jump_tables *tables, const sj_jump_table *table);

/* sj_read_jump_tables reads the tables that disassembled ranges name and decides by all entries
 * of each whether it belongs to a switch. Marks where those lead, sets `is_cold` of ranges that are
 * parts of a function, and adds them to `found->weak`. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_read_jump_tables(sj_module *module, sj_found_links *found);

/* sj_is_switch_table returns whether the table of addresses at `address` belongs to a switch; else
 * it is an array of functions. */
bool sj_is_switch_table(const sj_module *module, uint64_t address);

/* sj_may_be_part returns whether a range has no name, and no code calls or takes its address. */
bool sj_may_be_part(const sj_module *module, const sj_code_range *range);

#endif
