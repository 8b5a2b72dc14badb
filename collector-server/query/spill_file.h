/* Spill file: a temporary file without a name, for data that a query cannot hold in memory.
 *
 * SQLite chooses its folder: the first usable of SQLITE_TMPDIR, TMPDIR, /var/tmp, /usr/tmp and
 * /tmp. The system removes the file when it is closed or the process ends. Functions return SQLite
 * result codes; SQLITE_FULL: the disk is full. They block on the disk. Not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SPILL_FILE_H
#define SJ_COLLECTOR_SERVER_QUERY_SPILL_FILE_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_SPILL_MOST_BYTES = 65536 }; /* bytes per call; SQLite accepts less than 128 KiB */

typedef struct sj_spill_file {
    sqlite3_file *file; /* NULL: the file does not exist yet */
    int64_t size;
} sj_spill_file;

/* Appends up to SJ_SPILL_MOST_BYTES; the first call creates the file. */
int sj_spill_append(sj_spill_file *spill, const void *bytes, size_t size);

/* Reads `size` bytes, up to SJ_SPILL_MOST_BYTES, which must have been appended before. */
int sj_spill_read(sj_spill_file *spill, void *bytes, size_t size, int64_t offset);

/* Truncates the file; the next append reuses it. */
void sj_spill_clear(sj_spill_file *spill);

void sj_spill_close(sj_spill_file *spill); /* safe on a zeroed spill file */

#endif
