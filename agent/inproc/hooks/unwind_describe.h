/* Unwind tables for one place in a stub area, made when an unwinder asks for them. They are for
 * unwinders that cannot use the table of a whole area (unwind_table.h). Some have no program
 * counter in its expressions. Others look one byte before each place. */
#ifndef SJ_AGENT_INPROC_HOOKS_UNWIND_DESCRIBE_H
#define SJ_AGENT_INPROC_HOOKS_UNWIND_DESCRIBE_H

#include <stdbool.h>
#include <stdint.h>

enum { SJ_UNWIND_DESCRIPTION_BYTES = 144 };

/* Returns an .eh_frame_hdr, without an index, whose .eh_frame describes the stub that contains
 * `pc`. `subtracts_one`: the unwinder subtracts 1 from each program counter, also behind a signal,
 * and `pc` is the result. The table has at most SJ_UNWIND_DESCRIPTION_BYTES and never changes.
 * Async-signal-safe; takes no lock. Returns NULL in three cases:
 *   * `pc` is not in a stub
 *   * the stub's place is unknown
 *   * thousands of different tables have been asked for */
const uint8_t *sj_unwind_describe(uint64_t pc, bool subtracts_one);

#endif
