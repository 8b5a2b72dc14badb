/* Modules of a foreign process, read from its memory: their mappings and exported names. Works in
 * any mount namespace, and for files that have been deleted or replaced. */
#ifndef SJ_AGENT_PTRACE_TRACEE_MODULES_H
#define SJ_AGENT_PTRACE_TRACEE_MODULES_H

#include "agent/ptrace/tracee.h"

#include <linux/limits.h>

typedef struct sj_remote_module {
    uint64_t low; /* from the first byte to the end of the last mapping */
    uint64_t high;
    uint64_t code_low; /* from the lowest to the highest executable mapping */
    uint64_t code_high;
    char path[PATH_MAX]; /* as the kernel reports it, including " (deleted)" */
} sj_remote_module;

/* Finds the first module with code whose file name begins with `prefix`. Passes over pieces of its
 * file that the program has mapped only to read them. They may stay when the module is gone.
 * Returns SJ_ENOTFOUND if no such module is mapped. Returns SJ_EPERM if the mappings cannot be
 * read. */
SJ_MUST_CHECK sj_status sj_remote_module_find(pid_t pid, const char *prefix,
                                              sj_remote_module *module);

typedef void sj_remote_module_visit(void *context, const sj_remote_module *module);

/* Passes each module that has code to `visit`, the lowest first. The path of the kernel's own
 * library is "[vdso]". Returns SJ_EPERM if the mappings cannot be read. */
SJ_MUST_CHECK sj_status sj_remote_modules_each(pid_t pid, sj_remote_module_visit *visit,
                                               void *context);

/* Finds the C library. The errors are those of sj_remote_module_find. */
SJ_MUST_CHECK sj_status sj_remote_libc_find(pid_t pid, sj_remote_module *module);

typedef struct sj_remote_range {
    uint64_t low;
    uint64_t high;
} sj_remote_range;

/* Finds the mapping around an address. Sets `*grows` if it is the first thread's stack, which grows
 * downwards. Returns SJ_ENOTFOUND. */
SJ_MUST_CHECK sj_status sj_remote_mapping_find(pid_t pid, uint64_t address, sj_remote_range *range,
                                               bool *grows);

/* Looks up an exported symbol. The content of the other process's memory is not trusted. Returns
 * SJ_ENOTFOUND or SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_remote_symbol(const sj_tracee *target, const sj_remote_module *module,
                                         const char *name, uint64_t *address);

/* Like sj_remote_symbol, but stores the range of the symbol, from its address and size. Returns the
 * same errors. */
SJ_MUST_CHECK sj_status sj_remote_symbol_range(const sj_tracee *target,
                                               const sj_remote_module *module, const char *name,
                                               sj_remote_range *range);

/* Returns the range of the C library's function fork, or an empty range if it is not found. A
 * thread in fork may hold every lock of the C library, and may walk the list of fork handlers. */
sj_remote_range sj_remote_fork_find(const sj_tracee *target);

/* Looks up an exported function of the C library. Returns SJ_ENOTFOUND. */
SJ_MUST_CHECK sj_status sj_remote_function_find(const sj_tracee *target, const char *name,
                                                uint64_t *function);

/* Returns the address of the C library's restorer, to which signal handlers return, or 0 if it is
 * not found. */
uint64_t sj_remote_restorer_find(const sj_tracee *target);

static inline bool sj_remote_is_in(const sj_remote_range *range, uint64_t pc)
{
    return pc >= range->low && pc < range->high;
}

#endif
