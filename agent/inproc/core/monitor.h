/* Monitors: the agent's work in the program besides hooking functions. Each is one file with one
 * constant descriptor and one line in SJ_MONITORS. The recorder requests it by its bit in
 * sj_link_welcome.runtimes. */
#ifndef SJ_AGENT_INPROC_CORE_MONITOR_H
#define SJ_AGENT_INPROC_CORE_MONITOR_H

#include "agent/abi/link.h"

#include <stdbool.h>

/* Every function may be NULL. `stop` is called only for a started monitor. `on_modules` is called
 * for a started monitor, and for a monitor without `start` or with `waits_for_module`. Only one
 * thread calls them at a time. They must not use locks of the C library's allocator. */
typedef struct sj_monitor {
    sj_link_runtime bit; /* bit in sj_link_welcome.runtimes */
    const char *name;    /* for users: "event loops" */
    /* Called when the recorder has requested this monitor and no plan is applied yet. */
    void (*prepare)(void);
    /* Starts to record, at the start of the program. If the monitor has a `stop`,
     * sojourn_agent_bind calls it in an attached process. The caller does not hold a lock of the
     * loader. It may be called again, with or without a `stop` in between. Returns false if the
     * program has nothing to monitor, or if out of memory. */
    bool (*start)(void);
    /* Called when modules were loaded or unloaded, under the loader's lock. */
    void (*on_modules)(void);
    /* Called in the only thread of a forked child before it joins the session, even if the monitor
     * is not started. */
    void (*after_fork)(void);
    /* Called in the only thread of a forked child when it joins a session that has this monitor.
     * `rejoin` and `after_fork` must not use a lock that fork does not reset (lint.locks). */
    void (*rejoin)(void);
    /* Restores what `start` changed while other threads run, and writes what stays in the program
     * to sojourn_agent_state. The caller does not hold a lock of the loader. If NULL, the changes
     * of `start` stay until the process ends, so attached processes are not monitored. */
    void (*stop)(void);
    bool waits_for_module; /* on_modules is called even before the monitor is started */
    bool has_thunk;        /* after `stop` calls may still return through sj_arch_return_thunk */
} sj_monitor;

/* The monitors in the order in which they start. row(NAME) is sj_monitor_NAME. */
#define SJ_MONITORS(row)                                                                           \
    row(objc) row(objc_replaced) row(loops) row(mono_anew) row(mono) row(jvm) row(heap_guard)      \
        row(delayed_free) row(objc_zombies)

/* Prepares the monitors of `runtimes` (sj_link_runtime bits) before plans are applied. */
void sj_monitors_prepare(uint32_t runtimes);

/* Prepares the monitors of `runtimes` in a forked child. */
void sj_monitors_rejoin(uint32_t runtimes);

/* Sets the monitors of this session. */
void sj_monitors_choose(uint32_t runtimes);

/* Returns the monitors of this session (sj_link_runtime bits). */
uint32_t sj_monitors_chosen(void);

/* Starts the chosen monitors. In an attached process, starts only those that can stop. Sets the
 * state's `binding` while one of these runs. */
void sj_monitors_start(bool is_attached);

/* Starts the monitors of `runtimes` in a running process, even if the recorder did not request them
 * at the start. */
void sj_monitors_start_late(uint32_t runtimes);

/* Call `on_modules` and `after_fork` of the monitors. */
void sj_monitors_on_modules(void);
void sj_monitors_after_fork(void);

/* Stops the monitors. Returns true if calls may still return through the thunk. */
bool sj_monitors_stop(void);

#endif
