/* Limits of a recorder (setrlimit(2)), which the program that it starts does not get. */
#ifndef SJ_AGENT_HOST_OWN_LIMITS_H
#define SJ_AGENT_HOST_OWN_LIMITS_H

#include "proto/base/error.h"

#include <stddef.h>

/* sj_own_limits_raise has this process open as many files as its hard limit allows. Call it before
 * threads start; again, it does nothing. */
void sj_own_limits_raise(void);

/* sj_own_limits_restore gives the process the limit that it began with: for a child that is to
 * execute another program. Async-signal-safe. */
void sj_own_limits_restore(void);

/* sj_own_limits_check refuses a stack that a recording would overflow, and an address space in
 * which libraries hang instead of failing. SJ_ELIMIT. */
SJ_MUST_CHECK sj_status sj_own_limits_check(sj_error *error);

/* sj_own_limits_describe writes a sentence about the limits that may be why something failed, or ""
 * when none is low. */
void sj_own_limits_describe(char *text, size_t capacity);

#endif
