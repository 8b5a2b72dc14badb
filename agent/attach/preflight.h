/* Checks if a process can be attached to, before anything is touched. */
#ifndef SJ_AGENT_ATTACH_PREFLIGHT_H
#define SJ_AGENT_ATTACH_PREFLIGHT_H

#include "agent/ptrace/proc_status.h"
#include "proto/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Kind of the program that a process runs. */
typedef enum sj_program_kind {
    SJ_PROGRAM_FITS = 0,
    SJ_PROGRAM_UNREADABLE,
    SJ_PROGRAM_FOREIGN, /* For another machine. */
    SJ_PROGRAM_STATIC,  /* Has no loader. */
    SJ_PROGRAM_EMULATOR /* Runs a program for another machine. */
} sj_program_kind;

/* All facts that decide whether a process can be attached to. */
typedef struct sj_preflight_facts {
    pid_t pid;
    pid_t own_pid;
    uint32_t own_user;
    uint64_t own_capabilities; /* Effective capabilities. */
    int yama;                  /* kernel.yama.ptrace_scope. 0 if there is no Yama. */
    sj_proc_status process;
    bool is_closed;   /* The kernel shows its memory only to root. */
    pid_t pid_inside; /* Its pid in its own PID namespace. */
    char tracer_name[32];
    sj_program_kind program;
    bool has_direct;      /* It has loaded libsojourn-direct.so. */
    bool is_agent_hidden; /* It does not see the agent's file, or may not read it. */
} sj_preflight_facts;

/* Reads the facts. `agent_path` NULL: do not check its visibility. Returns SJ_ENOTFOUND if the
 * process does not exist. */
SJ_MUST_CHECK sj_status sj_preflight_facts_read(pid_t pid, const char *agent_path,
                                                sj_preflight_facts *facts);

/* Decides by the facts alone. Errors are those of sj_preflight_check. */
SJ_MUST_CHECK sj_status sj_preflight_decide(const sj_preflight_facts *facts, sj_error *error);

/* Returns SJ_OK if a process can be attached to. Otherwise the error has the reason and the remedy.
 * Returns SJ_ENOTFOUND if the process does not exist. Returns SJ_EPERM if attaching is not allowed.
 * Returns SJ_EUNSUPPORTED if it is impossible for this program. Returns SJ_EEXIST if another
 * process traces it. `agent_path` must be visible to the process; NULL: not checked. */
SJ_MUST_CHECK sj_status sj_preflight_check(pid_t pid, const char *agent_path, sj_error *error);

#endif
