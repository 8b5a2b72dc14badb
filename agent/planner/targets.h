/* Steps of sj_module_find_targets, each in its own file. */
#ifndef SJ_AGENT_PLANNER_TARGETS_H
#define SJ_AGENT_PLANNER_TARGETS_H

#include "agent/planner/module.h"

/* A link from a range to another one. The lists of sj_found_links say what the numbers are. */
typedef struct sj_link {
    uint32_t from;
    uint32_t to;
} sj_link;

typedef struct sj_links {
    sj_link *items;
    size_t count;
    size_t capacity;
} sj_links;

/* Appends a link. Returns SJ_ENOMEM, or SJ_ELIMIT beyond 2^32 links. */
SJ_MUST_CHECK sj_status sj_links_add(sj_links *links, uint32_t from, uint32_t to);

typedef struct sj_jump_tables sj_jump_tables; /* jump_tables.h */

/* Results of the scan, in addition to bits of the module. */
typedef struct sj_found_links {
    sj_links jumps;  /* jumps that leave their range; from: range, to: index of the instruction */
    sj_links strong; /* pairs of ranges for sj_join_parts */
    sj_links weak;   /* pairs of ranges for sj_join_parts */
    sj_links labels; /* addresses that code takes; from: range, to: offset in another range */
} sj_found_links;

/* Frees the lists. */
void sj_links_free(sj_found_links *found);

/* Marks an offset that control may reach. `is_addressed` says that code or data takes its
 * address. */
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

/* Disassembles all code, marks its targets and fills `found`. Uses up to module->threads threads.
 * Returns SJ_ENOMEM, SJ_ELIMIT for more than 2^32 instructions, or an error of sj_decoder_open. */
SJ_MUST_CHECK sj_status sj_scan_code(sj_module *module, sj_found_links *found);

/* Asks the kernel for huge pages, which cause fewer page faults. For memory that will be filled
 * completely. */
void sj_prefer_large_pages(void *items, size_t bytes);

/* Marks the addresses in relocations, and in the data of programs at fixed addresses. */
void sj_mark_data(sj_module *module);

/* Assigns every cold part to its function. `strong` links come from jumps and landing pads. `weak`
 * links come from jump tables; they join only parts that have no function yet. Returns SJ_ENOMEM if
 * out of memory. */
SJ_MUST_CHECK sj_status sj_join_parts(sj_module *module, sj_links *strong, const sj_links *weak);

/* Excludes functions whose code cannot be decoded or whose exits are unknown. Returns SJ_ENOMEM if
 * out of memory. */
SJ_MUST_CHECK sj_status sj_decide_ranges(sj_module *module);

/* Sets dead_flags_at_entry and dead_flags_at_return of every function. Call it last. Returns
 * SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_find_dead_flags(sj_module *module);

/* True if the code from an offset on overwrites the status flags before it reads them. */
bool sj_flags_are_dead(const sj_module *module, int64_t offset);

/* Marks bytes between and inside ranges that are never executed. Returns an error of
 * sj_decoder_open. */
SJ_MUST_CHECK sj_status sj_find_padding(sj_module *module);

#endif
