/* The directory of a spool. */
#ifndef SJ_AGENT_UPLINK_SPOOL_DIRECTORY_H
#define SJ_AGENT_UPLINK_SPOOL_DIRECTORY_H

#include "proto/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { SJ_SPOOL_NAMES_BYTES = 64 /* space for the names of files in the directory */ };

/* Creates the directory (0700) unless it exists, and sets `*is_new`. Returns SJ_EINVAL if the path
 * is NULL or leaves no space for names within `path_bytes`, or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_spool_directory_make(const char *path, size_t path_bytes, bool *is_new,
                                                sj_error *error);

/* Removes the directory of a spool that could not be opened. Does nothing if the directory contains
 * frames. */
void sj_spool_directory_remove_unused(const char *path);

#endif
