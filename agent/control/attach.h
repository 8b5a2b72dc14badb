/* Attaching to a running process and leaving it.
 *
 * begin: the agent is loaded into the process by a call of dlopen in one of its threads, stopped at
 * a point where it holds no lock that dlopen needs; the others run on. It joins the session over
 * the link, which must be served meanwhile, and makes stubs, but changes no text.
 * commit: all threads are stopped for the time that it takes to write the changes and to copy the
 * tops of their stacks.
 * leave: the same backwards; in the end nothing of Sojourn is in the process.
 *
 * Whoever attaches may be killed at any moment: the process goes on, and what it takes to clean up
 * is in its own memory (agent/lifecycle/face.h), where sj_attach_leave finds it.
 * Everything here blocks, and is called from one thread. */
#ifndef SJ_AGENT_CONTROL_ATTACH_H
#define SJ_AGENT_CONTROL_ATTACH_H

#include "agent/control/error.h"
#include "proto/ids.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct sj_attach sj_attach;

typedef struct sj_attach_report {
    uint64_t prepare_ns;     /* finding a safe point, loading the agent, planning, stubs */
    uint64_t stopped_ns;     /* all threads stopped */
    uint64_t stopped_cpu_ns; /* of stopped_ns: what the tracer worked */
    uint64_t loading_ns;     /* of prepare_ns: one thread was used to load the agent */
    uint32_t threads;
    uint32_t patches;
    uint32_t refused;
    uint32_t moved;
} sj_attach_report;

/* sj_attach_begin prepares the process. On failure it is as it was. The error names the reason and
 * the remedy: see sj_attach_check; SJ_EEXIST it is recorded already, by whom is told. */
SJ_MUST_CHECK sj_status sj_attach_begin(pid_t pid, const char *agent_path,
                                        const char *runtime_directory, sj_attach **attach,
                                        sj_error *error);

/* sj_attach_commit begins the recording. SJ_ECLOSED the process has ended. */
SJ_MUST_CHECK sj_status sj_attach_commit(sj_attach *attach, sj_attach_report *report,
                                         sj_error *error);

/* sj_attach_commit_forked writes the hooks into a child that was forked while its parent was
 * prepared and not yet committed; nothing is done for one that has them. The child says hello at
 * that moment, in another thread than the one that attaches, so any thread may call this.
 * SJ_ECLOSED it has ended, SJ_EPERM, SJ_EIO, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_attach_commit_forked(pid_t pid, sj_error *error);

/* A call that was open when recording began: outermost first for each thread. */
typedef struct sj_open_call {
    pid_t tid;
    uint64_t pc;    /* in the function */
    uint64_t stack; /* address of its return address */
    bool is_next;   /* `pc` is the next instruction; else it is behind a call */
} sj_open_call;

/* sj_attach_open_calls follows the stacks that commit has copied, after the process runs again.
 * `*calls` is allocated, the caller frees it. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_attach_open_calls(sj_attach *attach, sj_open_call **calls,
                                             size_t *count);

/* sj_attach_bind leads the Objective-C dispatcher of a process to the agent, after
 * sj_attach_commit, when the session asks for that. SJ_EUNSUPPORTED the process has none. */
SJ_MUST_CHECK sj_status sj_attach_bind(sj_attach *attach, sj_error *error);

void sj_attach_free(sj_attach *attach);

typedef struct sj_leave_report {
    uint64_t stopped_ns;     /* the longest stop of all threads */
    uint64_t stopped_cpu_ns; /* of that: what the tracer worked */
    uint32_t restored;       /* pieces of text */
    uint32_t kept;           /* pieces that could not be restored: a thread stands in them */
    uint64_t left_bytes;     /* of mappings that stay: frames in flight, or an agent that stays */
    uint64_t message_stubs;  /* of an Objective-C dispatcher, which stay with it */
    bool stays; /* until the process ends: it may have kept stubs, or nothing can be unloaded in it
                 */
    uint64_t api_gate_bytes; /* of the gates that calls by sojourn.h go through, which stay */
    bool had_agent;
} sj_leave_report;

/* sj_attach_leave takes everything of Sojourn out of a process, whoever put it there. A process
 * that has ended, or has no agent, is left already. SJ_EPERM, SJ_EAGAIN it cannot be done now. */
SJ_MUST_CHECK sj_status sj_attach_leave(pid_t pid, sj_leave_report *report, sj_error *error);

/* sj_attach_is_replaced tells whether a process that was attached to lives on without its agent: it
 * has executed another program. Any thread. */
bool sj_attach_is_replaced(pid_t pid);

/* sj_attach_leave_strays takes Sojourn out of the processes of a session that never said hello:
 * children that were forked by a bare system call, or while the agent was being loaded. `parents`
 * are the processes of the session. Returns how many it found; `*left_bytes` is what stays in them.
 */
size_t sj_attach_leave_strays(const sj_session_id *session, const pid_t *parents, size_t count,
                              uint64_t *left_bytes);

/* Who records a process. */
typedef struct sj_recorded {
    bool has_agent;
    bool is_active;   /* patches are in the text */
    bool is_launched; /* the agent was preloaded */
    bool stays;       /* the agent cannot be taken out: preloaded, or a dispatcher led to it */
    pid_t companion;  /* living process that records it; 0: it is gone */
    sj_session_id session;
} sj_recorded;

/* sj_attach_look tells who records a process. SJ_ENOTFOUND, SJ_EPERM. */
SJ_MUST_CHECK sj_status sj_attach_look(pid_t pid, sj_recorded *recorded, sj_error *error);

#endif
