/* A library that few runs need, loaded when it is first used: at the start of every command the
 * loader would bind it and all that it needs itself. */
#ifndef SJ_PROTO_BASE_LATE_LIBRARY_H
#define SJ_PROTO_BASE_LATE_LIBRARY_H

#include "proto/base/error.h"

#include <stddef.h>

/* A function of the library, and where its address goes in the caller's structure of pointers. */
typedef struct sj_late_symbol {
    const char *name;
    size_t offset;
} sj_late_symbol;

/* sj_late_library_load fills `functions` with the addresses of `count` functions of the library
 * with that soname, which stays loaded. Reads files the first time. Thread-safe. SJ_ENOTFOUND:
 * there is no such library, or it lacks one of them. */
SJ_MUST_CHECK sj_status sj_late_library_load(const char *library, const sj_late_symbol *symbols,
                                             size_t count, void *functions, sj_error *error);

#endif
