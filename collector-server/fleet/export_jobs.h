/* The file maker: carries out the commands `export` and `record` (record_jobs.h), one after the
 * other, in a thread of its own. Each waits until its session has come to its end, becomes a file
 * beside the database
 * (<database>.files/<command_id>, mode 0600, kept for a day), and goes to the device as a command
 * `write` when a directory there was named. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_EXPORT_JOBS_H
#define SJ_COLLECTOR_SERVER_FLEET_EXPORT_JOBS_H

#include "proto/base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct sj_export_jobs sj_export_jobs;

/* sj_export_jobs_start works on an existing database until sj_export_jobs_stop. SJ_EIO, SJ_ENOMEM.
 */
SJ_MUST_CHECK sj_status sj_export_jobs_start(const char *database, sj_export_jobs **maker,
                                             sj_error *error);

/* sj_export_jobs_stop waits for an export that is being written. NULL is allowed. */
void sj_export_jobs_stop(sj_export_jobs *maker);

/* sj_command_file_path writes where the file of a command lies. */
void sj_command_file_path(const char *database, uint64_t command, char *path, size_t capacity);

#endif
