/* JSON files in the daemon's state directory (device/), mode 0600. A file is complete or absent. */
#ifndef SJ_AGENT_DAEMON_STATE_FILE_H
#define SJ_AGENT_DAEMON_STATE_FILE_H

#include "proto/base/error.h"

#include <jansson.h>
#include <stddef.h>

/* Writes the path of a file, and makes the state directory if needed. Returns SJ_ELIMIT if the path
 * does not fit, or an error of sj_state_directory. */
SJ_MUST_CHECK sj_status sj_state_file_path(const char *name, char *path, size_t capacity,
                                           sj_error *error);

/* Reads a JSON object, which the caller releases. Returns SJ_ENOTFOUND if the file does not exist.
 * Returns SJ_ECORRUPT if it is damaged; `error` names file and line. Returns SJ_EIO or
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_state_file_load(const char *name, json_t **object, sj_error *error);

/* Reads a JSON object from a file at any path. Otherwise like sj_state_file_load. Returns the same
 * errors. */
SJ_MUST_CHECK sj_status sj_state_file_read(const char *path, json_t **object, sj_error *error);

/* Writes a new file beside the old one and renames it. Returns SJ_EIO if that fails, or an error of
 * sj_state_file_path. */
SJ_MUST_CHECK sj_status sj_state_file_keep(const char *name, const json_t *object, sj_error *error);

/* Sets a member of an object, and takes over the value. Returns SJ_ENOMEM if the value is NULL or
 * cannot be stored. */
SJ_MUST_CHECK sj_status sj_state_set(json_t *object, const char *key, json_t *value,
                                     sj_error *error);

#endif
