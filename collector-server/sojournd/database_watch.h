/* Checks whether the database's file is still the file that was opened. It works while no frames
 * are stored, too. */
#ifndef SJ_COLLECTOR_SERVER_SOJOURND_DATABASE_WATCH_H
#define SJ_COLLECTOR_SERVER_SOJOURND_DATABASE_WATCH_H

#include "proto/base/error.h"

typedef struct sj_database_watch sj_database_watch;

/* Makes a watch with its own connection to an existing database. `path` is borrowed. Errors: those
 * of sj_database_open, and SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_database_watch_open(const char *path, sj_database_watch **watch,
                                               sj_error *error);
void sj_database_watch_close(sj_database_watch *watch);

/* Checks the file. Thread-safe. Blocks only while another thread checks. Returns SJ_EIO if the file
 * was removed, replaced or overwritten; the message says what to do. */
SJ_MUST_CHECK sj_status sj_database_watch_check(sj_database_watch *watch, sj_error *error);

#endif
