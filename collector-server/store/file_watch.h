/* Detects that a program other than SQLite changed a database's file while it was open: it
 * copied over the file, truncated it, or put another database in its place. SQLite writes to the
 * file only at checkpoints. So the first bytes and the size stay the same between two
 * checkpoints.
 *
 * A watch belongs to one connection. One thread at a time. */
#ifndef SJ_COLLECTOR_SERVER_STORE_FILE_WATCH_H
#define SJ_COLLECTOR_SERVER_STORE_FILE_WATCH_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum { SJ_FILE_WATCH_HEADER_BYTES = 100, SJ_FILE_WATCH_LOG_WORDS = 4 };

typedef struct sj_file_watch {
    bool is_known;       /* the last check has set the fields below */
    bool is_overwritten; /* set once an overwrite was found, and never cleared */
    uint8_t header[SJ_FILE_WATCH_HEADER_BYTES];
    int64_t file_bytes;
    uint32_t log[SJ_FILE_WATCH_LOG_WORDS]; /* changes with each checkpoint */
} sj_file_watch;

/* Compares the file with the state that the last check found, and stores the new state in `watch`.
 * The first check of a zero-initialized watch only stores the state. Does nothing for databases
 * without a write-ahead log, and while a checkpoint is running. Does not block. Returns SJ_EIO if
 * the file was overwritten, now and in all later calls. The message names `path` and says what to
 * do. */
SJ_MUST_CHECK sj_status sj_file_watch_check(sj_file_watch *watch, sqlite3 *database,
                                            const char *path, sj_error *error);

#endif
