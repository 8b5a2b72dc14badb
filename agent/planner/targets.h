/* Steps of sj_module_find_targets, one file each. */
#ifndef SJ_AGENT_PLANNER_TARGETS_H
#define SJ_AGENT_PLANNER_TARGETS_H

#include "agent/planner/module.h"

/* A range whose code leads into another range, or to a cold part. */
typedef struct sj_link {
    uint32_t from;
    uint32_t to;
} sj_link;

typedef struct sj_links {
    sj_link *items;
    size_t count;
    size_t capacity;
} sj_links;

SJ_MUST_CHECK sj_status sj_links_add(sj_links *links, uint32_t from, uint32_t to);

typedef struct sj_jump_tables sj_jump_tables; /* jump_tables.h */

/* Findings of the scan in addition to marks. */
typedef struct sj_found_links {
    sj_links jumps;  /* from = range, to = code: jumps that leave their range */
    sj_links strong; /* ranges, as for sj_join_parts */
    sj_links weak;
    sj_links labels; /* from = range, to = offset in another range whose address the code takes */
} sj_found_links;

/* Frees all of them. */
void sj_links_free(sj_found_links *found);

/* Marks an address that control may reach. `is_addressed`: its address is taken. */
static inline void sj_mark(sj_module *module, int64_t offset, bool is_addressed)
{
    if (sj_module_holds(module, offset)) {
        sj_bit_mark(module->targets, (uint32_t)offset);
        sj_bit_mark(module->pinned, (uint32_t)offset);
        if (is_addressed) {
            sj_bit_mark(module->addressed, (uint32_t)offset);
        }
    }
}

/* Disassembles all code, marks its targets and fills `found`, on as many threads as the module
 * allows. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_scan_code(sj_module *module, sj_found_links *found);

/* Tells the kernel that memory will be filled completely. */
void sj_prefer_large_pages(void *items, size_t bytes);

/* Marks the targets of relocations and (without position independence) of data. */
void sj_mark_data(sj_module *module);

/* Assigns every cold part to its function. `strong` links are jumps. `weak` links come from tables
 * and count only for parts without a jump to them. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_join_parts(sj_module *module, sj_links *strong, const sj_links *weak);

/* Excludes functions with code or jumps that are not understood. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_decide_ranges(sj_module *module);

/* Decides for every function whether the status flags are dead at its entry and when it returns.
 * Call it last. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_find_dead_flags(sj_module *module);

/* True if the flags are overwritten before any read when control continues at an offset. */
bool sj_flags_are_dead(const sj_module *module, int64_t offset);

/* Marks bytes between and inside ranges that are never executed. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_find_padding(sj_module *module);

#endif
