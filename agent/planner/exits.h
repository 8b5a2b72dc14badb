/* Decides which instructions end a call of a function. */
#ifndef SJ_AGENT_PLANNER_EXITS_H
#define SJ_AGENT_PLANNER_EXITS_H

#include "agent/planner/module.h"

typedef enum sj_exit {
    SJ_EXIT_NOT = 0,  /* stays in the function */
    SJ_EXIT_LEAVES,   /* return or tail call */
    SJ_EXIT_TO_ENTRY, /* jump of a loop to the function's first instruction */
    SJ_EXIT_UNKNOWN   /* cannot be decided */
} sj_exit;

/* Shape of the code before a jump through a register. */
typedef struct sj_switch_shape {
    bool has_sum;       /* the code adds a table's base and an entry */
    bool is_indexed;    /* the code loads an element of an array of addresses */
    bool is_other_base; /* the entry is relative to something other than its table */
} sj_switch_shape;

/* Classifies an instruction of a range: whether it ends a call of the range's function. */
sj_exit sj_exit_of(const sj_module *module, const sj_code_range *range, const sj_code *code);

/* True if a direct jump leads to code that expects another frame than the frame at the jump. Such a
 * jump never runs: compilers let unreachable code jump to any code. */
bool sj_is_never_taken(const sj_module *module, const sj_code *jump);

/* Return the instruction that starts at an offset, or NULL if there is none. sj_code_at returns
 * only instructions of ranges. sj_any_code_at also returns instructions outside of all ranges. */
const sj_code *sj_code_at(const sj_module *module, int64_t offset);
const sj_code *sj_any_code_at(const sj_module *module, int64_t offset);

#endif
