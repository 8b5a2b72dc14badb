/* The file maker: carries out the commands `export`, one after the other, in a thread of its own.
 * Each waits until its session has come to its end, becomes a file beside the database
 * (<database>.files/<command_id>, mode 0600, kept for a day), and goes to the device as a command
 * `write` when a directory there was named. */
#ifndef SJ_COLLECTOR_CONTROL_FILE_MAKER_H
#define SJ_COLLECTOR_CONTROL_FILE_MAKER_H

#include "agent/control/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct sj_file_maker sj_file_maker;

/* sj_file_maker_start works on an existing database until sj_file_maker_stop. SJ_EIO, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_file_maker_start(const char *database, sj_file_maker **maker,
                                            sj_error *error);

/* sj_file_maker_stop waits for an export that is being written. NULL is allowed. */
void sj_file_maker_stop(sj_file_maker *maker);

/* sj_command_file_path writes where the file of a command lies. */
void sj_command_file_path(const char *database, uint64_t command, char *path, size_t capacity);

#endif
