/* Tells debuggers of stub areas, by gdb's interface for code that is made at run time: gdb finds
 * the list by the name of our variable, in living processes and in core files. */
#ifndef SJ_AGENT_INPROC_HOOKS_DEBUGGER_H
#define SJ_AGENT_INPROC_HOOKS_DEBUGGER_H

/* sj_debugger_add tells of an area that has a head. Areas beyond the 1,024th, and those without
 * unwind tables, are not told of. One thread at a time; takes no lock. */
void sj_debugger_add(const void *area);

/* sj_debugger_remove withdraws an area that no thread runs any more; one that is not known is left
 * alone. One thread at a time; takes no lock. */
void sj_debugger_remove(const void *area);

#endif
