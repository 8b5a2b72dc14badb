/* Prototypes: signatures of a library's functions (value_signature.h), one per line:
 *
 *     # file functions of the C library
 *     open(path:str, flags:hex, mode:int) -> int
 *
 * A rule that names only such a function uses its signature. Pure functions; thread-safe. */
#ifndef SJ_AGENT_POLICY_PROTOTYPES_H
#define SJ_AGENT_POLICY_PROTOTYPES_H

#include "proto/base/error.h"

#include <stddef.h>

enum { SJ_PROTOTYPES_BYTES = 1 << 20, SJ_PROTOTYPE_BYTES = 512 };

/* Calls `visit` for each prototype. `name` and `signature`, "(path:str) -> int", are borrowed for
 * the call. Error messages start with `origin`. Returns SJ_EINVAL with file and line, or the error
 * that `visit` returned. */
SJ_MUST_CHECK sj_status sj_prototypes_read(
    const char *text, size_t bytes, const char *origin, void *context,
    sj_status (*visit)(void *context, const char *name, const char *signature), sj_error *error);

/* The prototypes of the C library (prototypes/libc.txt), shipped with Sojourn. */
extern const char sj_prototypes_libc[];

#endif
