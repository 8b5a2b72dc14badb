/* The export thread. It carries out the commands `export` and `record` (record_jobs.h), one after
 * the other.
 *
 * Each command waits until its session has ended, and then writes a file beside the database
 * (<database>.files/<command_id>, mode 0600). The file is kept for a day. If the command names a
 * directory on the device, a command `write` brings the file to the device. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_EXPORT_JOBS_H
#define SJ_COLLECTOR_SERVER_FLEET_EXPORT_JOBS_H

#include "proto/base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct sj_export_jobs sj_export_jobs;

/* Starts the thread for an existing database; sj_export_jobs_stop ends it. Returns SJ_EIO,
 * SJ_ENOMEM, or the errors of sj_fleet_open. */
SJ_MUST_CHECK sj_status sj_export_jobs_start(const char *database, sj_export_jobs **maker,
                                             sj_error *error);

/* Stops the thread. Blocks until an export under way is written. NULL is allowed. */
void sj_export_jobs_stop(sj_export_jobs *maker);

/* Writes the path of the file that a command has made or makes, terminated by NUL, to `path`. */
void sj_command_file_path(const char *database, uint64_t command, char *path, size_t capacity);

#endif
