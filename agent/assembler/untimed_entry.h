/* Untimed entries, as the assembler is fed them. Exits without a clock are like others: what a call
 * is, its entry says. */
#ifndef SJ_AGENT_ASSEMBLER_UNTIMED_ENTRY_H
#define SJ_AGENT_ASSEMBLER_UNTIMED_ENTRY_H

/* In the stack of an ENTER: no clock was read, and its time is an estimate (SJ_CALL_UNTIMED). It is
 * 0 in an address. In the arena SJ_STACK_UNTIMED says so of both ends. */
enum { SJ_UNTIMED_ENTRY = 1 };

#endif
