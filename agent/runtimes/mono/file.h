/* Files that runtimes read whole. */
#ifndef SJ_AGENT_RUNTIMES_MONO_FILE_H
#define SJ_AGENT_RUNTIMES_MONO_FILE_H

#include "proto/base/status.h"

#include <stddef.h>
#include <stdint.h>

/* sj_mono_load_file reads a file into memory that becomes the caller's: a copy, because a mapped
 * file may be cut while it is read. SJ_ENOTFOUND; SJ_ECORRUPT: it is empty, too large or no plain
 * file; SJ_EIO; SJ_ENOMEM. On an error `*bytes` may hold memory to free, if it was NULL before. */
SJ_MUST_CHECK sj_status sj_mono_load_file(const char *path, uint8_t **bytes, size_t *size);

#endif
