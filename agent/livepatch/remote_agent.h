/* The agent in another process, as its state (agent/abi/agent_state.h) shows it. */
#ifndef SJ_AGENT_LIVEPATCH_REMOTE_AGENT_H
#define SJ_AGENT_LIVEPATCH_REMOTE_AGENT_H

#include "agent/abi/agent_state.h"
#include "agent/abi/heap_residue.h"
#include "agent/abi/hooked_module.h"
#include "agent/ptrace/text_patch.h"
#include "agent/ptrace/tracee_modules.h"

/* A copy of one module's table of changes. */
typedef struct sj_remote_table {
    sj_hooked_module module;
    sj_hook_change *changes; /* [module.change_count]. */
} sj_remote_table;

typedef struct sj_remote_agent {
    sj_remote_module module;
    uint64_t state_address;
    sj_agent_state state;
    uint64_t restorer; /* Restorer of signal handlers. 0: not found. */
    sj_remote_table *tables;
    size_t table_count;
    size_t table_capacity;
    sj_heap_residue residue; /* Residue of the heap monitor. magic 0: there is none. */
} sj_remote_agent;

/* Finds the agent and reads its state and tables. The caller releases it with
 * sj_remote_agent_deinit, also after an error. Returns SJ_EAGAIN if the agent is changing the
 * tables, SJ_ENOTFOUND if there is no agent, SJ_EVERSION if it has another version, SJ_EIO or
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_remote_agent_find(const sj_tracee *target, sj_remote_agent *agent);
void sj_remote_agent_deinit(sj_remote_agent *agent);

/* Reads state and tables again. Returns SJ_EAGAIN if the agent is changing them: let it run. */
SJ_MUST_CHECK sj_status sj_remote_agent_reload(const sj_tracee *target, sj_remote_agent *agent);

/* True if the tables have not changed since they were read. Threads are stopped. */
bool sj_remote_agent_is_unchanged(const sj_tracee *target, const sj_remote_agent *agent);

/* True if code of the program will return to the agent although its stack does not show this
 * (calling_out), or if calling_out cannot be read. Threads are stopped. */
bool sj_remote_agent_is_awaited(const sj_tracee *target, const sj_remote_agent *agent);

/* True if the tables have not changed since they were read and, according to the loader's list,
 * contain every module. Threads are stopped. */
bool sj_remote_agent_is_current(const sj_tracee *target, const sj_remote_agent *agent);

/* Reads the tables again and stops all threads at a moment when they are current. `*start_ns`
 * (monotonic) is the start of the stop. Returns SJ_EAGAIN if modules are loaded all the time. Also
 * returns errors of sj_tracee_stop_all. After an error all threads run. */
SJ_MUST_CHECK sj_status sj_remote_agent_stop_current(sj_tracee *target, sj_remote_agent *agent,
                                                     uint64_t *start_ns, sj_error *error);

/* True if a change is wanted; see sj_remote_agent_choose. */
typedef bool (*sj_remote_agent_wants)(void *context, const sj_hook_change *change);

/* Changes to write (`on`) or to restore. Zeroed: none. */
typedef struct sj_remote_choice {
    bool on;
    sj_remote_agent_wants wants;
    void *context;
    sj_text_change change;
} sj_remote_choice;

/* Prepares to write or restore the changes that `wants` chooses (NULL: all), except those that are
 * in that state already. Uses the tables of the last reload. Threads may run. Releases the previous
 * choice. Returns SJ_ENOMEM, or SJ_EIO if the text cannot be read. */
SJ_MUST_CHECK sj_status sj_remote_agent_choose(const sj_tracee *target,
                                               const sj_remote_agent *agent, bool on,
                                               sj_remote_agent_wants wants, void *context,
                                               sj_remote_choice *choice);
void sj_remote_choice_deinit(sj_remote_choice *choice);

/* Applies the choice and notes it in the agent's tables. Threads are stopped. Returns SJ_EAGAIN,
 * with nothing written, in three cases: the tables have changed since the choice; changes are to be
 * written and the tables do not contain every module; threads start and end too fast. Also returns
 * errors of sj_text_change_clear and sj_text_change_apply. */
SJ_MUST_CHECK sj_status sj_remote_agent_toggle(sj_tracee *target, sj_remote_agent *agent,
                                               sj_remote_choice *choice,
                                               sj_text_patch_report *report);

/* Chooses and toggles in one step, while threads are stopped and the tables are current. Returns
 * errors of sj_remote_agent_choose and sj_remote_agent_toggle. */
SJ_MUST_CHECK sj_status sj_remote_agent_change(sj_tracee *target, sj_remote_agent *agent, bool on,
                                               sj_remote_agent_wants wants, void *context,
                                               sj_text_patch_report *report);

/* Returns the addresses to which signal handlers return in the process. */
sj_signal_returns sj_remote_agent_signal_returns(const sj_remote_agent *agent);

/* Makes a stopped thread call an exported function of the agent. Returns SJ_ENOTFOUND if the agent
 * has no such function. Also returns errors of sj_inferior_call_run. */
SJ_MUST_CHECK sj_status sj_remote_agent_call(sj_tracee *target, const sj_remote_agent *agent,
                                             size_t thread, const char *name);

/* Makes any stopped thread with enough stack call a function of the agent that takes no lock.
 * Returns SJ_EAGAIN if no thread has enough stack. Also returns errors of sj_remote_agent_call. */
SJ_MUST_CHECK sj_status sj_remote_agent_call_any(sj_tracee *target, const sj_remote_agent *agent,
                                                 const char *name);

#endif
