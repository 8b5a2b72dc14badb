/* Whether a process can be attached to, asked before anything is touched. */
#ifndef SJ_AGENT_ATTACH_PREFLIGHT_H
#define SJ_AGENT_ATTACH_PREFLIGHT_H

#include "agent/ptrace/proc_status.h"
#include "proto/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What the program is that a process runs. */
typedef enum sj_program_kind {
    SJ_PROGRAM_FITS = 0,
    SJ_PROGRAM_UNREADABLE,
    SJ_PROGRAM_FOREIGN, /* for another machine */
    SJ_PROGRAM_STATIC,  /* without a loader */
    SJ_PROGRAM_EMULATOR /* runs a program for another machine */
} sj_program_kind;

/* All that decides whether a process can be attached to. */
typedef struct sj_preflight_facts {
    pid_t pid;
    pid_t own_pid;
    uint32_t own_user;
    uint64_t own_capabilities; /* effective */
    int yama;                  /* kernel.yama.ptrace_scope; 0 where there is no Yama */
    sj_proc_status process;
    bool is_closed; /* the kernel shows its memory to root only */
    bool is_other_pid_namespace;
    pid_t pid_inside; /* its number in its own PID namespace */
    char tracer_name[32];
    sj_program_kind program;
    bool has_direct;      /* libsojourn-direct.so is in it */
    bool is_agent_hidden; /* it does not see the agent's file, or may not read it */
} sj_preflight_facts;

/* sj_preflight_facts_read collects them. `agent_path` NULL: whether it is seen is not asked.
 * SJ_ENOTFOUND. */
SJ_MUST_CHECK sj_status sj_preflight_facts_read(pid_t pid, const char *agent_path,
                                                sj_preflight_facts *facts);

/* sj_preflight_decide decides on facts alone; errors as sj_preflight_check. */
SJ_MUST_CHECK sj_status sj_preflight_decide(const sj_preflight_facts *facts, sj_error *error);

/* sj_preflight_check refuses with the reason and the remedy what cannot be attached to:
 * SJ_ENOTFOUND no such process, SJ_EPERM not allowed, SJ_EUNSUPPORTED it cannot be done to this
 * program, SJ_EEXIST somebody traces it. `agent_path` must be visible for it; NULL: not checked. */
SJ_MUST_CHECK sj_status sj_preflight_check(pid_t pid, const char *agent_path, sj_error *error);

#endif
