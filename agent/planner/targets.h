/* Steps of sj_module_find_targets, one file each. */
#ifndef SJ_AGENT_PLANNER_TARGETS_H
#define SJ_AGENT_PLANNER_TARGETS_H

#include "agent/planner/module.h"

/* A range whose code leads into the inside of another, or to a cold part. */
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

/* What the code says besides marks. */
typedef struct sj_found_links {
    sj_links jumps;  /* from = range, to = code: leaves its range */
    sj_links strong; /* ranges, as sj_join_parts takes them */
    sj_links weak;
    sj_links labels; /* from = range, to = offset inside of another whose address the code takes */
} sj_found_links;

/* sj_links_free frees all of them. */
void sj_links_free(sj_found_links *found);

/* sj_mark marks an address that control may reach; `is_addressed` when its address is taken. */
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

/* sj_scan_code disassembles all code, marks what it leads to and adds to `found`: on as many
 * threads as the module says. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_scan_code(sj_module *module, sj_found_links *found);

/* sj_prefer_large_pages says that memory is filled from end to end. */
void sj_prefer_large_pages(void *items, size_t bytes);

/* sj_mark_data marks what relocations and (without position independence) data point to. */
void sj_mark_data(sj_module *module);

/* sj_join_parts gives every cold part to its function. `strong` links are jumps, `weak` ones come
 * from tables and only count for parts that no jump leads to. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_join_parts(sj_module *module, sj_links *strong, const sj_links *weak);

/* sj_decide_ranges excludes the functions with code or jumps that are not understood. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_decide_ranges(sj_module *module);

/* sj_find_dead_flags decides for every function whether the status flags are dead at its entry and
 * when it returns. The last step: SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_find_dead_flags(sj_module *module);

/* sj_flags_are_dead returns whether the flags are overwritten before anything can read them when
 * control goes on at an offset. */
bool sj_flags_are_dead(const sj_module *module, int64_t offset);

/* sj_find_padding marks bytes between and inside of ranges that are never executed. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_find_padding(sj_module *module);

#endif
