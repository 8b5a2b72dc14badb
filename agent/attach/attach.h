/* Attaches to a running process; detach.h undoes it.
 *
 * begin: one thread of the process calls dlopen on the agent. It is stopped at a safepoint, where
 * it holds no lock that dlopen needs; the other threads keep running. The agent joins the session
 * over the link, which must be served meanwhile, and prepares stubs, but changes no text.
 * commit: all threads are stopped while the changes are written and the tops of the stacks copied.
 *
 * The tracer may be killed at any moment: the process keeps running, and all that is needed to
 * clean up is in its own memory (agent/abi/agent_state.h), where sj_detach_process finds it.
 * Everything here blocks, and is called from one thread. */
#ifndef SJ_AGENT_ATTACH_ATTACH_H
#define SJ_AGENT_ATTACH_ATTACH_H

#include "proto/base/error.h"
#include "proto/base/ids.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct sj_attach sj_attach;

typedef struct sj_attach_report {
    uint64_t prepare_ns;     /* finding a safepoint, loading the agent, planning, stubs */
    uint64_t stopped_ns;     /* all threads stopped */
    uint64_t stopped_cpu_ns; /* of stopped_ns: CPU time of the tracer */
    uint64_t loading_ns;     /* of prepare_ns: one thread loads the agent */
    uint32_t threads;
    uint32_t patches;
    uint32_t refused;
    uint32_t moved;
} sj_attach_report;

/* sj_attach_begin prepares the process. A failure leaves it unchanged. The error names the reason
 * and the remedy: see sj_preflight_check; SJ_EEXIST it is recorded already (the error names the
 * session and its recorder). */
SJ_MUST_CHECK sj_status sj_attach_begin(pid_t pid, const char *agent_path,
                                        const char *runtime_directory, sj_attach **attach,
                                        sj_error *error);

/* sj_attach_commit begins the recording. SJ_ECLOSED the process has ended. */
SJ_MUST_CHECK sj_status sj_attach_commit(sj_attach *attach, sj_attach_report *report,
                                         sj_error *error);

/* sj_attach_end_joining has the process listed as recorded: all that the session watches in it has
 * begun. Nothing is done for a process that has ended. Any thread; stops nothing. */
void sj_attach_end_joining(pid_t pid);

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

/* sj_attach_bind redirects references of a process (those to a runtime's dispatcher, after
 * sj_attach_commit) or registers with its runtime (Mono, before), when the session asks for it.
 * SJ_EUNSUPPORTED the process has none. */
SJ_MUST_CHECK sj_status sj_attach_bind(sj_attach *attach, sj_error *error);

void sj_attach_free(sj_attach *attach);

#endif
