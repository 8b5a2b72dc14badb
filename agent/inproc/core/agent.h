/* The agent as a whole: what its constructor, its fork handlers and the functions that a tracer
 * calls do. */
#ifndef SJ_AGENT_INPROC_CORE_AGENT_H
#define SJ_AGENT_INPROC_CORE_AGENT_H

/* sojourn_agent_attach joins the session whose runtime directory a tracer has written to
 * sojourn_agent_state, and prepares the hooks of all modules without writing any. A tracer calls it
 * in a thread that is outside of the loader and the allocator, while the others run. The phase of
 * the state is the result. A second call announces the modules that were loaded since. */
void sojourn_agent_attach(void);

/* sojourn_agent_transition asks the recorder which further functions of the known modules it wants,
 * and prepares their hooks without writing them. A tracer calls it in any thread. */
void sojourn_agent_transition(void);

/* sojourn_agent_watch_heap prepares the monitor of freed memory, if the recorder has made its
 * region, without writing the entries. A tracer calls it in a thread that holds no lock of the
 * loader. */
void sojourn_agent_watch_heap(void);

/* sojourn_agent_shrink_heap halves the memory that freed blocks keep. A tracer calls it in any
 * thread that holds no lock of the loader. */
void sojourn_agent_shrink_heap(void);

/* sojourn_agent_leave_heap gives back what that monitor has, but for blocks that live. A tracer
 * calls it after it has restored the entries that give blocks out and found no thread in the stubs
 * or in the agent, while all others are stopped: it takes no lock. */
void sojourn_agent_leave_heap(void);

/* sojourn_agent_detach releases everything but the agent itself. A tracer calls it after it has
 * restored the text and found no thread in the stubs or in the agent, while all others are stopped:
 * it takes no lock. */
void sojourn_agent_detach(void);

/* sojourn_agent_adopt_signals and sojourn_agent_leave_signals put gates in front of the program's
 * signal handlers and take them away (signals.h). A tracer calls the first when it has written the
 * hooks, and the second before it restores the text, in any thread; neither takes a lock. */
void sojourn_agent_adopt_signals(void);
void sojourn_agent_leave_signals(void);

/* sojourn_agent_bind starts the monitors of the session in an attached process; `binding` of the
 * state is the result. A tracer calls it in a thread that holds no lock of the loader. */
void sojourn_agent_bind(void);

/* sojourn_agent_unbind stops the monitors. A tracer calls it in a thread that holds no lock of the
 * loader; other threads run on. */
void sojourn_agent_unbind(void);

/* sojourn_agent_unregister removes the fork handlers from the C library for good. A tracer calls it
 * after sojourn_agent_detach, in a thread that holds no lock of the C library. */
void sojourn_agent_unregister(void);

/* sj_agent_on_initialisation is called by the loader, under its lock, before it initialises a
 * module whose initialisation leads to the agent (sj_arch_init_entry). */
void sj_agent_on_initialisation(void);

#endif
