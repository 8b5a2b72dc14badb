/* Announces stub areas to debuggers by gdb's JIT interface. gdb finds the list of areas by the name
 * of its variable, in running processes and in core files. */
#ifndef SJ_AGENT_INPROC_HOOKS_DEBUGGER_H
#define SJ_AGENT_INPROC_HOOKS_DEBUGGER_H

/* Announces an area that has a head and a map. Ignores areas without a map, and areas beyond the
 * 1,024th. Not thread-safe; takes no lock. */
void sj_debugger_add(const void *area);

/* Removes the area from the list. No thread may run its code any more. Ignores unknown areas. Not
 * thread-safe; takes no lock. */
void sj_debugger_remove(const void *area);

#endif
