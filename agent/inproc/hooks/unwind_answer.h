/* Unwind tables for one place in a stub area, made when an unwinder asks for them. They serve the
 * unwinders that the table of a whole area (unwind_table.h) does not: those that find no program
 * counter in its expressions, and those that look one byte in front of each place. */
#ifndef SJ_AGENT_INPROC_HOOKS_UNWIND_ANSWER_H
#define SJ_AGENT_INPROC_HOOKS_UNWIND_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

enum { SJ_UNWIND_ANSWER_BYTES = 144 };

/* sj_unwind_answer returns an .eh_frame_hdr, without an index, whose .eh_frame describes the stub
 * that `pc` is in. `looks_before`: the unwinder subtracts 1 from each program counter, also behind
 * a signal, and `pc` is the result. The table is at most SJ_UNWIND_ANSWER_BYTES long and stays as
 * it is for ever. NULL: `pc` is in no stub, the stub's place is not known, or thousands of
 * different tables have been asked for. Async-signal-safe; takes no lock. */
const uint8_t *sj_unwind_answer(uint64_t pc, bool looks_before);

#endif
