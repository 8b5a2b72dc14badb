#include "tests/support/unusual_program.h"

#include "agent/assembler/untimed_entry.h"

uint32_t unusual_program_below(unusual_program *made, uint32_t limit)
{
    return (uint32_t)(trace_random(&made->random) >> 20) % limit;
}

/* Makes most entries of function 3 entries without a time. */
static uint32_t untimed_mark(unusual_program *made, uint32_t function)
{
    return function == 3 && unusual_program_below(made, 4) != 0 ? SJ_UNTIMED_ENTRY : 0;
}

static sj_record enter_at(unusual_program *made, uint32_t stack)
{
    const uint32_t function = 1 + unusual_program_below(made, 5);
    made->functions[made->depth] = function;
    made->stacks[made->depth++] = stack;
    return trace_record(SJ_RECORD_ENTER, function, stack + untimed_mark(made, function),
                        made->ticks);
}

/* Ends the innermost call by a jump. In most cases the next record is the entry of the jump's
 * target. */
static sj_record jump(unusual_program *made)
{
    made->depth--;
    made->jumps = unusual_program_below(made, 40) != 0;
    return trace_record(SJ_RECORD_LEAVE, made->functions[made->depth],
                        made->stacks[made->depth] + SJ_STACK_TAIL_CALL, made->ticks);
}

static sj_record unusual_record(unusual_program *made)
{
    switch (unusual_program_below(made, 8)) {
    case 0:
        return trace_record(SJ_RECORD_NOTE, 1 + unusual_program_below(made, 8),
                            unusual_program_below(made, 40), made->ticks);
    case 1:
        return trace_record(SJ_RECORD_LEAVE, 1 + unusual_program_below(made, 5),
                            UNUSUAL_LOW + unusual_program_below(made, UNUSUAL_STACK_BYTES),
                            made->ticks);
    case 2: /* an entry at the stack address of the innermost open call */
        return enter_at(made, made->depth > 0 ? made->stacks[made->depth - 1] : UNUSUAL_TOP - 2);
    case 3: /* any kind of record, mostly with an earlier time */
        return trace_record((sj_record_kind)unusual_program_below(made, 4),
                            unusual_program_below(made, 3),
                            UNUSUAL_LOW + unusual_program_below(made, UNUSUAL_STACK_BYTES),
                            made->ticks - unusual_program_below(made, 300));
    default: /* a throw leaves up to three calls */
        made->depth -= made->depth > 4 ? unusual_program_below(made, 4) : 0;
        return enter_at(made,
                        made->depth > 0 ? made->stacks[made->depth - 1] - 2 : UNUSUAL_TOP - 4);
    }
}

sj_record unusual_program_next(unusual_program *made)
{
    made->ticks += unusual_program_below(made, 4) * 26;
    if (made->jumps && unusual_program_below(made, 50) != 0) {
        made->jumps = false;
        return enter_at(made, made->stacks[made->depth]);
    }
    made->jumps = false;
    const uint32_t space =
        made->depth > 0 ? made->stacks[made->depth - 1] - UNUSUAL_LOW : UNUSUAL_STACK_BYTES;
    if (unusual_program_below(made, 400) == 0 && space > 16) {
        return unusual_record(made);
    }
    const bool enters = space > 16 && unusual_program_below(made, 100) < (made->deep ? 70 : 50);
    if (enters || made->depth == 0) {
        const uint32_t from = made->depth > 0 ? made->stacks[made->depth - 1] : UNUSUAL_TOP - 2;
        return enter_at(made, from - 2);
    }
    if (unusual_program_below(made, 5) == 0) {
        return jump(made);
    }
    made->depth--;
    return trace_record(SJ_RECORD_LEAVE, made->functions[made->depth], made->stacks[made->depth],
                        made->ticks);
}

sj_record unusual_program_first(unusual_program *made)
{
    return enter_at(made, UNUSUAL_TOP - 2);
}
