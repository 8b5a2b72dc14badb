/* The agent as a whole: its constructor, its fork handlers, and the functions that a tracer
 * calls. */
#ifndef SJ_AGENT_INPROC_CORE_AGENT_H
#define SJ_AGENT_INPROC_CORE_AGENT_H

/* Joins the session whose runtime directory a tracer has written to sojourn_agent_state. Prepares
 * the hooks of all modules without writing them. A tracer calls it in a thread that is outside of
 * the loader and the allocator, while the other threads run. The state's phase is the result. A
 * second call announces the modules that were loaded since. */
void sojourn_agent_attach(void);

/* Asks the recorder which further functions of the known modules it wants, and prepares their hooks
 * without writing them. A tracer calls it in any thread. */
void sojourn_agent_transition(void);

/* Prepares the monitor of freed memory without writing the entries, if the recorder has made its
 * region. A tracer calls it in a thread that does not hold a lock of the loader. */
void sojourn_agent_watch_heap(void);

/* Halves the memory that freed blocks keep. A tracer calls it in a thread that does not hold a lock
 * of the loader. */
void sojourn_agent_shrink_heap(void);

/* Releases the memory of the monitor of freed memory, except blocks in use. A tracer first restores
 * the entries that allocate blocks. It calls this while all other threads are stopped, and no
 * thread is in the stubs or in the agent. Takes no lock. */
void sojourn_agent_leave_heap(void);

/* Releases everything except the agent itself. A tracer first restores the text. It calls this
 * while all other threads are stopped, and no thread is in the stubs or in the agent. Takes no
 * lock. */
void sojourn_agent_detach(void);

/* sojourn_agent_adopt_signals installs gates for the program's signal handlers, and
 * sojourn_agent_leave_signals removes them (signals.h). A tracer calls the first after it has
 * written the hooks, and the second before it restores the text. Both run in any thread and take no
 * lock. */
void sojourn_agent_adopt_signals(void);
void sojourn_agent_leave_signals(void);

/* Starts the monitors of the session in an attached process. The state's `binding` is the result. A
 * tracer calls it in a thread that does not hold a lock of the loader. */
void sojourn_agent_bind(void);

/* Stops the monitors. A tracer calls it in a thread that does not hold a lock of the loader, while
 * other threads run. */
void sojourn_agent_unbind(void);

/* Removes the fork handlers from the C library for good. A tracer calls it after
 * sojourn_agent_detach, in a thread that does not hold a lock of the C library. */
void sojourn_agent_unregister(void);

/* Called by the loader, under its lock, before it initialises a module whose initialisation has
 * been redirected to the agent (sj_arch_init_entry). */
void sj_agent_on_initialisation(void);

#endif
