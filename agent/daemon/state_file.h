/* JSON files in the daemon's state directory (device/): mode 0600, whole or not there. */
#ifndef SJ_AGENT_DAEMON_STATE_FILE_H
#define SJ_AGENT_DAEMON_STATE_FILE_H

#include "proto/base/error.h"

#include <jansson.h>
#include <stddef.h>

/* sj_state_file_path returns where a file is. */
SJ_MUST_CHECK sj_status sj_state_file_path(const char *name, char *path, size_t capacity,
                                           sj_error *error);

/* sj_state_file_load reads a JSON object, released by the caller. SJ_ENOTFOUND: there is no such
 * file; SJ_ECORRUPT names file and line. */
SJ_MUST_CHECK sj_status sj_state_file_load(const char *name, json_t **object, sj_error *error);

/* sj_state_file_read is the same for a file anywhere. */
SJ_MUST_CHECK sj_status sj_state_file_read(const char *path, json_t **object, sj_error *error);

/* sj_state_file_keep writes the file beside and renames it. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_state_file_keep(const char *name, const json_t *object, sj_error *error);

#endif
