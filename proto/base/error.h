/* sj_error: the message that a failed operation leaves for the user. Used by everything that runs
 * outside the traced app; the agent itself only counts and disarms. */
#ifndef SJ_PROTO_BASE_ERROR_H
#define SJ_PROTO_BASE_ERROR_H

#include "proto/base/status.h"

enum { SJ_ERROR_TEXT_BYTES = 512 };

/* One sentence: what failed, where (file, line, byte), why, and what to do. No trailing newline. */
typedef struct sj_error {
    sj_status status;
    char text[SJ_ERROR_TEXT_BYTES];
} sj_error;

/* sj_fail fills `error` (NULL is allowed) and returns `status`, so that a function can write
 * `return sj_fail(error, SJ_EIO, "cannot open %s: %s", path, strerror(errno));`. Long texts are
 * cut. Any thread. */
__attribute__((format(printf, 3, 4))) sj_status sj_fail(sj_error *error, sj_status status,
                                                        const char *format, ...);

#endif
