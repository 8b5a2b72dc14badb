/* Notices when a database's file is written past SQLite while it is open: a copy over it, a
 * truncation, another database in its place. SQLite writes to the file at checkpoints only, so that
 * its first bytes and its size stay as they are between two checkpoints.
 *
 * A watch belongs to one connection; one thread at a time. */
#ifndef SJ_COLLECTOR_SERVER_STORE_FILE_WATCH_H
#define SJ_COLLECTOR_SERVER_STORE_FILE_WATCH_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum { SJ_FILE_WATCH_HEADER_BYTES = 100, SJ_FILE_WATCH_LOG_WORDS = 4 };

typedef struct sj_file_watch {
    bool is_known;       /* the fields below are those of the last look */
    bool is_overwritten; /* found once; it stays so */
    uint8_t header[SJ_FILE_WATCH_HEADER_BYTES];
    int64_t file_bytes;
    uint32_t log[SJ_FILE_WATCH_LOG_WORDS]; /* changes with each checkpoint */
} sj_file_watch;

/* Compares the file with the last look, and remembers it. The first look, zero-initialized, only
 * remembers. Does nothing for databases without a write-ahead log, and while a checkpoint is under
 * way. Does not block. Errors: SJ_EIO if the file was overwritten, now and from then on; the
 * sentence names `path` and says what to do. */
SJ_MUST_CHECK sj_status sj_file_watch_look(sj_file_watch *watch, sqlite3 *database,
                                           const char *path, sj_error *error);

#endif
