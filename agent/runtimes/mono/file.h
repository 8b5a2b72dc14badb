/* Reads files whole. */
#ifndef SJ_AGENT_RUNTIMES_MONO_FILE_H
#define SJ_AGENT_RUNTIMES_MONO_FILE_H

#include "proto/base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Copies a file into memory that the caller owns. It is a copy because a mapped file may be
 * truncated while it is read. Returns SJ_ENOTFOUND, SJ_EIO or SJ_ENOMEM. Returns SJ_ECORRUPT if the
 * file is empty, too large or not a regular file. `*bytes` must be NULL before; the caller frees it
 * also after an error. */
SJ_MUST_CHECK sj_status sj_mono_load_file(const char *path, uint8_t **bytes, size_t *size);

#endif
