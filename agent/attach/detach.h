/* Detaches from a process, also if its recorder was killed.
 *
 * Everything here blocks and is called from one thread, unless stated otherwise. */
#ifndef SJ_AGENT_ATTACH_DETACH_H
#define SJ_AGENT_ATTACH_DETACH_H

#include "agent/abi/overwritten.h"
#include "proto/base/error.h"
#include "proto/base/ids.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct sj_detach_process_report {
    uint64_t stopped_ns;     /* Longest stop of all threads. */
    uint64_t stopped_cpu_ns; /* CPU time of the tracer during that stop. */
    uint32_t restored;       /* Ranges of text that were restored. */
    /* Ranges that could not be restored: a thread stands in them, or the program has overwritten
     * them. */
    uint32_t kept;
    /* Functions whose hooks the program has overwritten. All hooks of these functions stay. */
    sj_overwritten overwritten;
    uint64_t left_bytes; /* Mappings that stay: for calls in flight, or the agent itself. */
    /* Number of the stubs of a runtime's dispatcher. They stay, because the program may have kept
     * their addresses. */
    uint64_t message_stubs;
    /* Live guarded blocks. The functions that free them stay redirected. */
    uint64_t heap_blocks;
    /* The agent stays until the process ends: it was preloaded, or nothing can be unloaded. */
    bool stays;
    /* Size of the trampolines for the calls of sojourn.h, which stay. */
    uint64_t api_trampoline_bytes;
    bool had_agent;
} sj_detach_process_report;

/* Removes everything of Sojourn from a process, whichever recorder put it there. Returns SJ_OK also
 * if the process has ended or has no agent. Blocks for up to about 20 s in a busy process, and
 * longer if a JVM removes its probes or threads wait for buffer space. Returns SJ_EPERM, or
 * SJ_EAGAIN if it is impossible now. */
SJ_MUST_CHECK sj_status sj_detach_process(pid_t pid, sj_detach_process_report *report,
                                          sj_error *error);

/* True if a process that was attached to runs without its agent, because it has executed another
 * program. Thread-safe. */
bool sj_detach_is_replaced(pid_t pid);

/* Detaches from processes of a session that never joined it: children forked by a bare system call,
 * or while the agent was being loaded. `parents` are the processes of the session. Returns the
 * number of these children. `*left_bytes` is the memory that stays mapped in them. */
size_t sj_detach_orphans(const sj_session_id *session, const pid_t *parents, size_t count,
                         uint64_t *left_bytes);

/* Writes the pids of living processes with an agent of the session that started after this process,
 * at most `capacity`. Returns their number. Processes whose memory may not be read are not
 * found. */
size_t sj_detach_list(const sj_session_id *session, pid_t *pids, size_t capacity);

/* The recording of a process. */
typedef struct sj_recorded {
    bool has_agent;
    bool is_active;   /* Patches are in the text. */
    bool is_joining;  /* Something that the session watches has not begun yet. */
    bool is_launched; /* The agent was preloaded. */
    /* The living recorder. 0: there is none, or it is silent. */
    pid_t recorder;
    bool is_silent; /* The recorder lives but takes no connections: it may be stopped. */
    sj_session_id session;
} sj_recorded;

/* Reports the recording of a process. If it has no agent, or an agent that cannot be read,
 * `has_agent` is false. Returns SJ_ENOTFOUND, SJ_EPERM, or SJ_EVERSION if the agent is of another
 * version. */
SJ_MUST_CHECK sj_status sj_detach_find(pid_t pid, sj_recorded *recorded, sj_error *error);

#endif
