/* Which instructions end a call of a function. */
#ifndef SJ_AGENT_PLANNER_EXITS_H
#define SJ_AGENT_PLANNER_EXITS_H

#include "agent/planner/module.h"

typedef enum sj_exit {
    SJ_EXIT_NOT = 0,  /* stays in the function */
    SJ_EXIT_LEAVES,   /* return or tail call */
    SJ_EXIT_TO_ENTRY, /* a loop to the function's own first instruction */
    SJ_EXIT_UNKNOWN   /* cannot be decided */
} sj_exit;

/* What leads to a jump through a register. */
typedef struct sj_switch_shape {
    bool has_sum;       /* an addition of a table's start and an entry */
    bool is_indexed;    /* a load of one of an array of addresses */
    bool is_other_base; /* the entry is relative to something else than its table */
} sj_switch_shape;

/* sj_exit_of decides on one instruction of a range. */
sj_exit sj_exit_of(const sj_module *module, const sj_code_range *range, const sj_code *code);

/* sj_is_never_taken returns whether a direct jump leads to code that expects another frame than the
 * jump leaves: compilers let what cannot be reached go on with whatever comes next. */
bool sj_is_never_taken(const sj_module *module, const sj_code *jump);

/* sj_code_at finds the instruction of a range that begins at an offset, sj_any_code_at one outside
 * of ranges, too; NULL when none does. */
const sj_code *sj_code_at(const sj_module *module, int64_t offset);
const sj_code *sj_any_code_at(const sj_module *module, int64_t offset);

#endif
