/* The agent in a foreign process, as its state (agent/abi/agent_state.h) shows it. */
#ifndef SJ_AGENT_LIVEPATCH_REMOTE_AGENT_H
#define SJ_AGENT_LIVEPATCH_REMOTE_AGENT_H

#include "agent/abi/agent_state.h"
#include "agent/abi/heap_residue.h"
#include "agent/abi/hooked_module.h"
#include "agent/ptrace/text_patch.h"
#include "agent/ptrace/tracee_modules.h"

/* One module's table of changes, with a copy of it. */
typedef struct sj_remote_table {
    sj_hooked_module module;
    sj_hook_change *changes; /* [module.change_count] */
} sj_remote_table;

typedef struct sj_remote_agent {
    sj_remote_module module;
    uint64_t state_address;
    sj_agent_state state;
    uint64_t restorer; /* of signal handlers; 0: not found */
    sj_remote_table *tables;
    size_t table_count;
    size_t table_capacity;
    sj_heap_custody custody; /* magic 0: there is none */
} sj_remote_agent;

/* sj_remote_agent_find looks for the agent and reads its state and tables. SJ_ENOTFOUND there is
 * none, SJ_EVERSION it is of another version, SJ_EIO, SJ_ENOMEM. Release with
 * sj_remote_agent_deinit, also after a failure. */
SJ_MUST_CHECK sj_status sj_remote_agent_find(const sj_tracee *target, sj_remote_agent *agent);
void sj_remote_agent_deinit(sj_remote_agent *agent);

/* sj_remote_agent_reload reads state and tables again. SJ_EAGAIN the agent changes them right now:
 * let it run on. */
SJ_MUST_CHECK sj_status sj_remote_agent_reload(const sj_tracee *target, sj_remote_agent *agent);

/* sj_remote_agent_is_unchanged returns whether the tables are still those that were read. Threads
 * are stopped. */
bool sj_remote_agent_is_unchanged(const sj_tracee *target, const sj_remote_agent *agent);

/* sj_remote_agent_is_awaited returns whether the program's code will return to the agent's where
 * no stack may tell (calling_out), or that cannot be read. Threads are stopped. */
bool sj_remote_agent_is_awaited(const sj_tracee *target, const sj_remote_agent *agent);

/* sj_remote_agent_is_current returns whether the tables are still those that were read and, as far
 * as the loader's list says, know every module. Threads are stopped. */
bool sj_remote_agent_is_current(const sj_tracee *target, const sj_remote_agent *agent);

/* sj_remote_agent_stop_current stops all threads at a moment at which the tables, read again, are
 * current; `*start_ns` (monotonic) is when it began to. SJ_EAGAIN modules are loaded all the time;
 * errors of sj_tracee_stop_all. All threads run on after a failure. */
SJ_MUST_CHECK sj_status sj_remote_agent_stop_current(sj_tracee *target, sj_remote_agent *agent,
                                                     uint64_t *start_ns, sj_error *error);

/* sj_remote_agent_wants decides on one change; see sj_remote_agent_choose. */
typedef bool (*sj_remote_agent_wants)(void *context, const sj_hook_change *change);

/* What is to be written (`on`) or taken back. Zeroed is nothing. */
typedef struct sj_remote_choice {
    bool on;
    sj_remote_agent_wants wants;
    void *context;
    sj_text_change change;
} sj_remote_choice;

/* sj_remote_agent_choose prepares the writing or taking back of the changes that `wants` chooses
 * (NULL: all) and that are not so already, by the tables of the last reload. Threads may run.
 * What was chosen before is released. SJ_ENOMEM, SJ_EIO the text cannot be read. */
SJ_MUST_CHECK sj_status sj_remote_agent_choose(const sj_tracee *target,
                                               const sj_remote_agent *agent, bool on,
                                               sj_remote_agent_wants wants, void *context,
                                               sj_remote_choice *choice);
void sj_remote_choice_deinit(sj_remote_choice *choice);

/* sj_remote_agent_toggle does what was chosen and notes it in the agent's tables. Threads are
 * stopped and the tables the ones that were chosen from. SJ_EAGAIN they are so no more, or threads
 * come and go too fast: nothing was written. Errors as sj_text_change_clear and _apply. */
SJ_MUST_CHECK sj_status sj_remote_agent_toggle(sj_tracee *target, sj_remote_agent *agent,
                                               sj_remote_choice *choice,
                                               sj_text_patch_report *report);

/* sj_remote_agent_change chooses and toggles at once, while threads are stopped and the tables
 * current. Errors as both. */
SJ_MUST_CHECK sj_status sj_remote_agent_change(sj_tracee *target, sj_remote_agent *agent, bool on,
                                               sj_remote_agent_wants wants, void *context,
                                               sj_text_patch_report *report);

/* sj_remote_agent_signal_returns gives what signal handlers return to in the process. */
sj_signal_returns sj_remote_agent_signal_returns(const sj_remote_agent *agent);

/* sj_remote_agent_call makes a stopped thread call an exported function of the agent. SJ_ENOTFOUND
 * the agent has none of that name; errors of sj_inferior_call_run. */
SJ_MUST_CHECK sj_status sj_remote_agent_call(sj_tracee *target, const sj_remote_agent *agent,
                                             size_t thread, const char *name);

/* sj_remote_agent_call_any makes any stopped thread with room on its stack call a function of the
 * agent that takes no lock. SJ_EAGAIN none has room; errors of sj_remote_agent_call. */
SJ_MUST_CHECK sj_status sj_remote_agent_call_any(sj_tracee *target, const sj_remote_agent *agent,
                                                 const char *name);

#endif
