/* Announces stub areas to debuggers, through gdb's interface for generated code. gdb finds the list
 * by the name of its variable, in running processes and in core files. */
#ifndef SJ_AGENT_INPROC_HOOKS_DEBUGGER_H
#define SJ_AGENT_INPROC_HOOKS_DEBUGGER_H

/* Announces an area that has a head and a map. Ignores areas without a map, and areas beyond the
 * 1,024th. Not thread-safe; takes no lock. */
void sj_debugger_add(const void *area);

/* Withdraws an area that no thread runs any more. Ignores unknown areas. Not thread-safe; takes no
 * lock. */
void sj_debugger_remove(const void *area);

#endif
