/* Announces stub areas to debuggers by gdb's JIT interface. gdb finds the list of areas by the name
 * of its variable, in running processes and in core files. */
#ifndef SJ_AGENT_INPROC_HOOKS_DEBUGGER_H
#define SJ_AGENT_INPROC_HOOKS_DEBUGGER_H

/* Announces the stub area at `area`, whose sj_stub_area is complete. Ignores an area without unwind
 * tables. Ignores the area if 1,024 areas are announced already. Not thread-safe; takes no lock. */
void sj_debugger_add(const void *area);

/* Removes the area from the list. No thread may run its code any more. Ignores unknown areas. Not
 * thread-safe; takes no lock. */
void sj_debugger_remove(const void *area);

#endif
