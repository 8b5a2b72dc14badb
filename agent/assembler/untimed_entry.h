/* Marks of entries and exits without a clock reading, in the records that the assembler is fed. If
 * the entry of a call is untimed, its exit has no mark: the mark of the entry covers the whole
 * call. */
#ifndef SJ_AGENT_ASSEMBLER_UNTIMED_ENTRY_H
#define SJ_AGENT_ASSEMBLER_UNTIMED_ENTRY_H

/* Bit of an ENTER's stack address, always 0 in an address: no clock was read, and the time is an
 * estimate (SJ_CALL_UNTIMED). In the arena SJ_STACK_UNTIMED marks both ends. */
enum { SJ_UNTIMED_ENTRY = 1 };

/* Bit of a LEAVE's stack address: a clock was read at the entry but not at the exit, because the
 * function lost its clock meanwhile. The end is an estimate (SJ_CALL_UNTIMED). */
enum { SJ_UNTIMED_EXIT = 2 };

#endif
