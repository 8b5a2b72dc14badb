/* The recorder's own resource limits (setrlimit(2)). The program that it starts gets the original
 * limits. */
#ifndef SJ_AGENT_HOST_OWN_LIMITS_H
#define SJ_AGENT_HOST_OWN_LIMITS_H

#include "proto/base/error.h"

#include <stddef.h>

/* Raises this process's limit of open files to its hard limit. Call it before threads start. A
 * second call does nothing. */
void sj_own_limits_raise(void);

/* Restores the limit of open files that the process started with, for a child that will execute
 * another program. Async-signal-safe. */
void sj_own_limits_restore(void);

/* Returns SJ_ELIMIT if the stack is so small that a recording would overflow it. Also returns
 * SJ_ELIMIT if the address space is so small that libraries hang instead of failing. */
SJ_MUST_CHECK sj_status sj_own_limits_check(sj_error *error);

/* Writes the limits that are low enough to have caused an error, or "" if none is. */
void sj_own_limits_describe(char *text, size_t capacity);

#endif
