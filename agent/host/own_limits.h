/* Limits of a recorder (setrlimit(2)), which the program that it starts does not inherit. */
#ifndef SJ_AGENT_HOST_OWN_LIMITS_H
#define SJ_AGENT_HOST_OWN_LIMITS_H

#include "proto/base/error.h"

#include <stddef.h>

/* Allows this process as many open files as its hard limit. Call it before threads start; a second
 * call does nothing. */
void sj_own_limits_raise(void);

/* Restores the limit that the process started with, for a child that will execute another program.
 * Async-signal-safe. */
void sj_own_limits_restore(void);

/* Refuses a stack that a recording would overflow, and an address space in which libraries hang
 * instead of failing. SJ_ELIMIT. */
SJ_MUST_CHECK sj_status sj_own_limits_check(sj_error *error);

/* Writes a sentence about the limits that may have caused an error, or "" if none is low. */
void sj_own_limits_describe(char *text, size_t capacity);

#endif
