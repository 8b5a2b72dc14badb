/* Reads a whole file. */
#ifndef SJ_AGENT_RUNTIMES_MONO_FILE_H
#define SJ_AGENT_RUNTIMES_MONO_FILE_H

#include "proto/base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Reads a file into new memory. Does not map it, because a mapped file may be truncated meanwhile.
 * Returns SJ_ENOTFOUND if it cannot be opened, SJ_ECORRUPT if it is empty, too large or not a
 * regular file, SJ_EIO or SJ_ENOMEM. `*bytes` must be NULL before the call. The caller frees it
 * with free(), even after an error. */
SJ_MUST_CHECK sj_status sj_mono_load_file(const char *path, uint8_t **bytes, size_t *size);

#endif
