/* Prototypes: signatures of a library's functions (value_signature.h), a line each:
 *
 *     # what a program asks of files
 *     open(path:str, flags:hex, mode:int) -> int
 *
 * They stand for a rule that names such a function alone. Pure functions; any thread. */
#ifndef SJ_AGENT_POLICY_PROTOTYPES_H
#define SJ_AGENT_POLICY_PROTOTYPES_H

#include "proto/base/error.h"

#include <stddef.h>

enum { SJ_PROTOTYPES_BYTES = 1 << 20, SJ_PROTOTYPE_BYTES = 512 };

/* sj_prototypes_read visits each: `name` and `signature`, "(path:str) -> int", are borrowed for the
 * call. `origin` begins the messages of errors. SJ_EINVAL with file and line, what `visit` returns
 * when that fails. */
SJ_MUST_CHECK sj_status sj_prototypes_read(
    const char *text, size_t bytes, const char *origin, void *context,
    sj_status (*visit)(void *context, const char *name, const char *signature), sj_error *error);

/* The prototypes of the C library (prototypes/libc.txt), which come with Sojourn. */
extern const char sj_prototypes_libc[];

#endif
