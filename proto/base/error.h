/* sj_error: the message of a failed operation for the user. All code outside the traced program
 * uses it. The agent in the traced program prints nothing: it counts the error and disarms
 * itself. */
#ifndef SJ_PROTO_BASE_ERROR_H
#define SJ_PROTO_BASE_ERROR_H

#include "proto/base/status.h"

enum { SJ_ERROR_TEXT_BYTES = 512 };

/* One sentence: what failed, where (file, line, byte), why, and what to do. No newline at the
 * end. */
typedef struct sj_error {
    sj_status status;
    char text[SJ_ERROR_TEXT_BYTES];
} sj_error;

/* Fills `error` (may be NULL) and returns `status`, so that a function can write `return
 * sj_fail(error, SJ_EIO, "cannot open %s: %s", path, strerror(errno));`. Cuts texts longer than
 * SJ_ERROR_TEXT_BYTES. Thread-safe. */
__attribute__((format(printf, 3, 4))) sj_status sj_fail(sj_error *error, sj_status status,
                                                        const char *format, ...);

#endif
