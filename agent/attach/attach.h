/* Attaches to a running process; detach.h undoes it.
 *
 * sj_attach_begin makes one thread of the process call dlopen on the agent. It stops that thread at
 * a safepoint, where the thread holds no lock that dlopen needs; the other threads keep running.
 * The agent joins the session over the link, which must be served meanwhile. The agent prepares
 * stubs, but changes no text. sj_attach_commit stops all threads, writes the changes and copies the
 * tops of the stacks.
 *
 * The tracer may be killed at any moment: the process keeps running. Everything needed to clean up
 * is in its own memory (agent/abi/agent_state.h), where sj_detach_process finds it. Everything here
 * blocks, and is called from one thread. */
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
    uint64_t prepare_ns; /* Time for finding a safepoint, loading the agent, planning and stubs. */
    uint64_t stopped_ns; /* Time during which all threads were stopped. */
    uint64_t stopped_cpu_ns; /* CPU time of the tracer during stopped_ns. */
    uint64_t loading_ns;     /* Part of prepare_ns in which a thread loads the agent. */
    uint32_t threads;
    uint32_t patches; /* Pieces of text that were written. */
    /* Pieces that were not written: other bytes were there, or a thread could not be moved. */
    uint32_t refused;
    /* How often a thread had to run to leave the bytes to be written, because a new program counter
     * was not enough. */
    uint32_t moved;
} sj_attach_report;

/* Prepares the process. An error leaves it unchanged, and names the reason and the remedy: see
 * sj_preflight_check. Returns SJ_EEXIST if the process is recorded already; the error names the
 * session and its recorder. */
SJ_MUST_CHECK sj_status sj_attach_begin(pid_t pid, const char *agent_path,
                                        const char *runtime_directory, sj_attach **attach,
                                        sj_error *error);

/* Begins the recording. Returns SJ_ECLOSED if the process has ended. */
SJ_MUST_CHECK sj_status sj_attach_commit(sj_attach *attach, sj_attach_report *report,
                                         sj_error *error);

/* Clears `is_joining` in the agent's state. Call it when all that the session records in the
 * process has begun. If the agent has not joined the awaited JVM by then, the session does not
 * record Java methods. Does nothing if the process has ended. Thread-safe; does not stop threads.
 */
void sj_attach_end_joining(pid_t pid);

/* Writes the hooks into a child that was forked between its parent's prepare and commit. Does
 * nothing if the child has hooks. Any thread may call it, because the child says hello in another
 * thread than the one that attaches. Returns SJ_ECLOSED if the child has ended, SJ_EPERM, SJ_EIO or
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_attach_commit_forked(pid_t pid, sj_error *error);

/* A call that was open when recording began. Each thread's calls are outermost first. */
typedef struct sj_open_call {
    pid_t tid;
    uint64_t pc;    /* An address in the function. */
    uint64_t stack; /* Address of its return address. */
    bool is_next;   /* True if `pc` is the next instruction. Otherwise `pc` follows a call. */
} sj_open_call;

/* Unwinds the stacks that commit has copied, while the process runs again. The caller frees
 * `*calls`. Returns SJ_ENOMEM, or SJ_EIO if the process has ended. */
SJ_MUST_CHECK sj_status sj_attach_open_calls(sj_attach *attach, sj_open_call **calls,
                                             size_t *count);

/* Redirects references to a runtime's dispatcher, or registers the agent with Mono: whichever the
 * session asks for. Call it after sj_attach_commit for a dispatcher, and before it for Mono.
 * Returns SJ_EUNSUPPORTED if the process has no such runtime. */
SJ_MUST_CHECK sj_status sj_attach_bind(sj_attach *attach, sj_error *error);

void sj_attach_free(sj_attach *attach);

#endif
