/* Detaching from a process, whether its recorder lives or was killed.
 *
 * Everything here blocks, and is called from one thread, but for what says otherwise. */
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
    uint64_t stopped_ns;     /* the longest stop of all threads */
    uint64_t stopped_cpu_ns; /* of that: CPU time of the tracer */
    uint32_t restored;       /* ranges of text */
    uint32_t kept;           /* ranges that could not be restored: a thread stands in them, or the
                                program has overwritten them */
    sj_overwritten overwritten; /* functions with such, whose other hooks stay, too */
    uint64_t left_bytes; /* of mappings that stay: frames in flight, or an agent that stays */
    uint64_t
        message_stubs;    /* of a runtime's dispatcher, which stay: the program may have kept any */
    uint64_t heap_blocks; /* guarded ones that the program has: what frees them stays redirected */
    bool stays;           /* the agent, until the process ends: it was preloaded, or nothing can be
                             unloaded */
    uint64_t api_trampoline_bytes; /* of trampolines of calls by sojourn.h, which stay */
    bool had_agent;
} sj_detach_process_report;

/* sj_detach_process removes everything of Sojourn from a process, no matter which recorder put it
 * there. A process that has ended or has no agent is a success. Blocking: up to some 20 s in a busy
 * process. SJ_EPERM, SJ_EAGAIN it cannot be done now. */
SJ_MUST_CHECK sj_status sj_detach_process(pid_t pid, sj_detach_process_report *report,
                                          sj_error *error);

/* sj_detach_is_replaced returns whether a process that was attached to lives without its agent: it
 * has executed another program. Any thread. */
bool sj_detach_is_replaced(pid_t pid);

/* sj_detach_orphans detaches from processes of a session that never joined it: children forked by a
 * bare system call, or while the agent was being loaded. `parents` are the processes of the
 * session. Returns how many it found; `*left_bytes` is what stays mapped in them. */
size_t sj_detach_orphans(const sj_session_id *session, const pid_t *parents, size_t count,
                         uint64_t *left_bytes);

/* sj_detach_list writes the pids of living processes with an agent of the session that are no older
 * than this process, at most `capacity`; returns how many. Those whose memory may not be read are
 * not found. */
size_t sj_detach_list(const sj_session_id *session, pid_t *pids, size_t capacity);

/* Who records a process. */
typedef struct sj_recorded {
    bool has_agent;
    bool is_active;   /* patches are in the text */
    bool is_joining;  /* something that the session watches has not begun yet */
    bool is_launched; /* the agent was preloaded */
    pid_t recorder;   /* living process that records it; 0: none lives, or it is silent */
    bool is_silent;   /* the recorder lives, and takes no connections: it may be stopped */
    sj_session_id session;
} sj_recorded;

/* sj_detach_look reports who records a process. SJ_ENOTFOUND, SJ_EPERM. */
SJ_MUST_CHECK sj_status sj_detach_look(pid_t pid, sj_recorded *recorded, sj_error *error);

#endif
