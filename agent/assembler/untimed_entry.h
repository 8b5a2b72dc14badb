/* Untimed entries and exits, as the assembler is fed them. The exit of a call with an untimed entry
 * is like others: what a call is, its entry says. */
#ifndef SJ_AGENT_ASSEMBLER_UNTIMED_ENTRY_H
#define SJ_AGENT_ASSEMBLER_UNTIMED_ENTRY_H

/* In the stack of an ENTER: no clock was read, and its time is an estimate (SJ_CALL_UNTIMED). It is
 * 0 in an address. In the arena SJ_STACK_UNTIMED says so of both ends. */
enum { SJ_UNTIMED_ENTRY = 1 };

/* In the stack of a LEAVE: no clock was read, though one was at the entry, as the function went off
 * the clock meanwhile. The call's end is an estimate (SJ_CALL_UNTIMED). */
enum { SJ_UNTIMED_EXIT = 2 };

#endif
