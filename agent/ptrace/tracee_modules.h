/* Modules of a foreign process, read from its memory: what is mapped where, and exported names.
 * Works in any mount namespace and for files that have been deleted or replaced. */
#ifndef SJ_AGENT_PTRACE_TRACEE_MODULES_H
#define SJ_AGENT_PTRACE_TRACEE_MODULES_H

#include "agent/ptrace/tracee.h"

#include <linux/limits.h>

typedef struct sj_remote_module {
    uint64_t low; /* of all its mappings */
    uint64_t high;
    uint64_t code_low; /* of the executable ones */
    uint64_t code_high;
    char path[PATH_MAX]; /* as the kernel reports it, " (deleted)" included */
} sj_remote_module;

/* sj_remote_module_find finds the first mapped file whose name begins with `prefix`. SJ_ENOTFOUND,
 * SJ_EPERM the mappings cannot be read. */
SJ_MUST_CHECK sj_status sj_remote_module_find(pid_t pid, const char *prefix,
                                              sj_remote_module *module);

/* sj_remote_libc_find finds the C library likewise. */
SJ_MUST_CHECK sj_status sj_remote_libc_find(pid_t pid, sj_remote_module *module);

typedef struct sj_remote_range {
    uint64_t low;
    uint64_t high;
} sj_remote_range;

/* sj_remote_mapping_find finds the mapping around an address; `*grows`: it is the first thread's
 * stack, which grows downwards. SJ_ENOTFOUND. */
SJ_MUST_CHECK sj_status sj_remote_mapping_find(pid_t pid, uint64_t address, sj_remote_range *range,
                                               bool *grows);

/* sj_remote_symbol looks an exported name up. The memory is foreign: every read is checked.
 * SJ_ENOTFOUND, SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_remote_symbol(const sj_tracee *target, const sj_remote_module *module,
                                         const char *name, uint64_t *address);

/* sj_remote_symbol_range does so and returns the end, too, as the symbol has it. */
SJ_MUST_CHECK sj_status sj_remote_symbol_range(const sj_tracee *target,
                                               const sj_remote_module *module, const char *name,
                                               sj_remote_range *range);

/* sj_remote_fork_find returns where the C library's fork is, empty when that is not found: a thread
 * in it may hold every lock of the C library, and goes over the handlers of fork. */
sj_remote_range sj_remote_fork_find(const sj_tracee *target);

/* sj_remote_function_find looks up an exported function of the C library. SJ_ENOTFOUND. */
SJ_MUST_CHECK sj_status sj_remote_function_find(const sj_tracee *target, const char *name,
                                                uint64_t *function);

/* sj_remote_restorer_find gives the return address of signal handlers; 0: not found. */
uint64_t sj_remote_restorer_find(const sj_tracee *target);

static inline bool sj_remote_is_in(const sj_remote_range *range, uint64_t pc)
{
    return pc >= range->low && pc < range->high;
}

#endif
