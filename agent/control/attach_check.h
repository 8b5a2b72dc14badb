/* Whether a process can be attached to, asked before anything is touched. */
#ifndef SJ_AGENT_CONTROL_ATTACH_CHECK_H
#define SJ_AGENT_CONTROL_ATTACH_CHECK_H

#include "agent/control/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What /proc tells of a process. */
typedef struct sj_process_facts {
    char name[64];
    char state;   /* R S D T t Z ... */
    pid_t leader; /* the process when `pid` names one of its threads */
    pid_t parent;
    pid_t tracer;
    uint32_t user;
    uint32_t effective_user;
    uint32_t threads;
    uint64_t capabilities;    /* permitted */
    int seccomp;              /* 0: none */
    unsigned seccomp_filters; /* 0 where the kernel does not tell */
    bool is_confined;         /* by seccomp, more than this process is */
    bool is_ending;           /* its memory is gone already */
    bool is_kernel;
} sj_process_facts;

/* sj_process_facts_read fills `facts`. SJ_ENOTFOUND. */
SJ_MUST_CHECK sj_status sj_process_facts_read(pid_t pid, sj_process_facts *facts);

/* What the program is that a process runs. */
typedef enum sj_program_kind {
    SJ_PROGRAM_FITS = 0,
    SJ_PROGRAM_UNREADABLE,
    SJ_PROGRAM_FOREIGN, /* for another machine */
    SJ_PROGRAM_STATIC,  /* without a loader */
    SJ_PROGRAM_EMULATOR /* runs a program for another machine */
} sj_program_kind;

/* All that decides whether a process can be attached to. */
typedef struct sj_attach_facts {
    pid_t pid;
    pid_t own_pid;
    uint32_t own_user;
    uint64_t own_capabilities; /* effective */
    int yama;                  /* kernel.yama.ptrace_scope; 0 where there is no Yama */
    sj_process_facts process;
    bool is_closed; /* the kernel shows its memory to root only */
    bool is_other_pid_namespace;
    pid_t pid_inside; /* its number in its own PID namespace */
    char tracer_name[32];
    sj_program_kind program;
    bool is_agent_hidden; /* it does not see the agent's file, or may not read it */
} sj_attach_facts;

/* sj_attach_facts_read collects them. `agent_path` NULL: whether it is seen is not asked.
 * SJ_ENOTFOUND. */
SJ_MUST_CHECK sj_status sj_attach_facts_read(pid_t pid, const char *agent_path,
                                             sj_attach_facts *facts);

/* sj_attach_judge decides on facts alone; errors as sj_attach_check. */
SJ_MUST_CHECK sj_status sj_attach_judge(const sj_attach_facts *facts, sj_error *error);

/* sj_attach_check refuses with the reason and the remedy what cannot be attached to: SJ_ENOTFOUND
 * no such process, SJ_EPERM not allowed, SJ_EUNSUPPORTED it cannot be done to this program,
 * SJ_EEXIST somebody traces it. `agent_path` must be visible for it; NULL: not checked. */
SJ_MUST_CHECK sj_status sj_attach_check(pid_t pid, const char *agent_path, sj_error *error);

#endif
