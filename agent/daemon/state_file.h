/* JSON files in the daemon's state directory (device/), mode 0600. A file is complete or absent. */
#ifndef SJ_AGENT_DAEMON_STATE_FILE_H
#define SJ_AGENT_DAEMON_STATE_FILE_H

#include "proto/base/error.h"

#include <jansson.h>
#include <stddef.h>

/* Writes the path of a file. Returns SJ_ELIMIT if it does not fit. */
SJ_MUST_CHECK sj_status sj_state_file_path(const char *name, char *path, size_t capacity,
                                           sj_error *error);

/* Reads a JSON object, which the caller releases. Returns SJ_ENOTFOUND if the file does not exist.
 * Returns SJ_ECORRUPT if it is damaged; `error` names file and line. Returns SJ_EIO or
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_state_file_load(const char *name, json_t **object, sj_error *error);

/* Reads a JSON object from a file at any path. Otherwise like sj_state_file_load. */
SJ_MUST_CHECK sj_status sj_state_file_read(const char *path, json_t **object, sj_error *error);

/* Writes a new file beside the old one and renames it. Returns SJ_EIO if that fails. */
SJ_MUST_CHECK sj_status sj_state_file_keep(const char *name, const json_t *object, sj_error *error);

/* Sets a member of an object, and takes over the value. Returns SJ_ENOMEM if the value is NULL. */
SJ_MUST_CHECK sj_status sj_state_set(json_t *object, const char *key, json_t *value,
                                     sj_error *error);

#endif
