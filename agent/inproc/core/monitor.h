/* Monitors: what the agent does inside the program besides hooking functions. Each is one file with
 * one constant descriptor and one line in SJ_MONITORS; the recorder asks for it by its bit in
 * sj_link_welcome.runtimes. */
#ifndef SJ_AGENT_INPROC_CORE_MONITOR_H
#define SJ_AGENT_INPROC_CORE_MONITOR_H

#include "agent/abi/link.h"

#include <stdbool.h>

/* Every function may be NULL. All but after_fork, rejoin and prepare are called for a started
 * monitor only, on_modules also for one that has no `start`, by one thread at a time; none may use
 * locks of the C library's allocator. */
typedef struct sj_monitor {
    sj_link_runtime bit; /* of sj_link_welcome.runtimes */
    const char *name;    /* for people: "event loops" */
    /* The recorder has asked for this monitor, and no plan is applied yet. */
    void (*prepare)(void);
    /* Starts to record: at the start of the program, or, if the monitor has a `stop`, in an
     * attached process by sojourn_agent_bind. The caller holds no lock of the loader. Again after
     * `stop`, and after `start` itself. False: the program has nothing to monitor, or there is no
     * memory. */
    bool (*start)(void);
    /* Modules were loaded or unloaded. Called under the loader's lock. */
    void (*on_modules)(void);
    /* The only thread of a forked child, before it joins the session; started or not. */
    void (*after_fork)(void);
    /* The only thread of a forked child, as it joins a session that has this monitor. This and
     * after_fork use no lock that fork does not reset (lint.locks). */
    void (*rejoin)(void);
    /* Gives the program back what `start` changed while other threads run on, and writes what stays
     * behind to sojourn_agent_state. The caller holds no lock of the loader. NULL: what `start`
     * changes stays until the process ends, so attached processes are not monitored. */
    void (*stop)(void);
    bool waits_for_module; /* on_modules is called before it is started, too */
    bool has_thunk;        /* after `stop` calls may still return through sj_arch_return_thunk */
} sj_monitor;

/* The monitors in the order in which they start: row(NAME) is sj_monitor_NAME. */
#define SJ_MONITORS(row)                                                                           \
    row(objc) row(objc_replaced) row(loops) row(mono_anew) row(mono) row(jvm) row(heap_guard)      \
        row(delayed_free) row(objc_zombies)

/* sj_monitors_prepare readies the monitors of `runtimes` (sj_link_runtime bits) before plans are
 * applied. */
void sj_monitors_prepare(uint32_t runtimes);

/* sj_monitors_rejoin readies the monitors of `runtimes` in a forked child. */
void sj_monitors_rejoin(uint32_t runtimes);

/* sj_monitors_choose says which monitors this session has. */
void sj_monitors_choose(uint32_t runtimes);

/* sj_monitors_are_chosen: the recorder asked for all of these (sj_link_runtime bits). */
bool sj_monitors_are_chosen(uint32_t runtimes);

/* sj_monitors_start starts the chosen ones; of an attached process those that can stop again. It
 * sets the agent's `binding` as long as one of these runs. */
void sj_monitors_start(bool is_attached);

/* sj_monitors_start_late starts the monitors of `runtimes` in a process that runs, chosen or not.
 */
void sj_monitors_start_late(uint32_t runtimes);

/* sj_monitors_on_modules and sj_monitors_after_fork call what their names say of the descriptors
 * above. */
void sj_monitors_on_modules(void);
void sj_monitors_after_fork(void);

/* sj_monitors_stop returns whether calls may still return through the thunk. */
bool sj_monitors_stop(void);

#endif
