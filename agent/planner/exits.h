/* Which instructions end a call of a function. */
#ifndef SJ_AGENT_PLANNER_EXITS_H
#define SJ_AGENT_PLANNER_EXITS_H

#include "agent/planner/module.h"

typedef enum sj_exit {
    SJ_EXIT_NOT = 0, /* stays in the function */
    SJ_EXIT_LEAVES,  /* return or tail call */
    SJ_EXIT_TO_HEAD, /* a loop to the function's own first instruction */
    SJ_EXIT_UNKNOWN  /* cannot be told */
} sj_exit;

/* What leads to a jump through a register. */
typedef struct sj_switch_shape {
    bool has_sum;       /* an addition of a table's start and an entry */
    bool is_indexed;    /* a load of one of an array of addresses */
    bool is_other_base; /* the entry is relative to something else than its table */
} sj_switch_shape;

/* sj_exit_of judges one instruction of a piece. */
sj_exit sj_exit_of(const sj_module *module, const sj_piece *piece, const sj_code *code);

/* sj_is_never_taken tells that a direct jump leads to code that expects another frame than the jump
 * leaves: compilers let what cannot be reached go on with whatever comes next. */
bool sj_is_never_taken(const sj_module *module, const sj_code *jump);

/* sj_code_at finds the instruction of a piece that begins at an offset, sj_any_code_at one outside
 * of pieces, too; NULL when none does. */
const sj_code *sj_code_at(const sj_module *module, int64_t offset);
const sj_code *sj_any_code_at(const sj_module *module, int64_t offset);

/* sj_jump_condition is the condition code of a conditional jump of x86-64. */
uint8_t sj_jump_condition(const sj_module *module, const sj_code *jump);

#endif
