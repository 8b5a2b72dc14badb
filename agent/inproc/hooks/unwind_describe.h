/* Makes an unwind table for one place in a stub area, when an unwinder asks for it. Used for
 * unwinders that cannot use the table of a whole area (unwind_table.h). Some of them cannot read
 * the program counter in expressions. Others subtract 1 from each program counter. */
#ifndef SJ_AGENT_INPROC_HOOKS_UNWIND_DESCRIBE_H
#define SJ_AGENT_INPROC_HOOKS_UNWIND_DESCRIBE_H

#include <stdbool.h>
#include <stdint.h>

enum { SJ_UNWIND_DESCRIPTION_BYTES = 144 };

/* Returns an .eh_frame_hdr whose .eh_frame describes the stub code at `pc`. `subtracts_one` says
 * that the unwinder subtracts 1 from each program counter, also in frames that a signal has
 * interrupted, and that `pc` is the result. The table has at most SJ_UNWIND_DESCRIPTION_BYTES and
 * never changes. Async-signal-safe; takes no lock. Returns NULL in three cases:
 *   * `pc` is not in a stub
 *   * the stub's place is unknown
 *   * the pool of 16,384 tables is nearly full */
const uint8_t *sj_unwind_describe(uint64_t pc, bool subtracts_one);

#endif
