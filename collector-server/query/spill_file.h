/* Spill file: a temporary file without a name, for data that a query cannot hold in memory. It is
 * written by appending, then read.
 *
 * It is in SQLite's folder for temporary files (SQLITE_TMPDIR, TMPDIR, /var/tmp, /tmp). It
 * disappears when it is closed or the process ends, however that ends. Functions return SQLite
 * result codes; SQLITE_FULL: the disk is full. Not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SPILL_FILE_H
#define SJ_COLLECTOR_SERVER_QUERY_SPILL_FILE_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_SPILL_MOST_BYTES = 65536 }; /* per call: SQLite's files accept less than 128 KiB */

typedef struct sj_spill_file {
    sqlite3_file *file; /* NULL: nothing was written yet */
    int64_t size;
} sj_spill_file;

/* Appends up to SJ_SPILL_MOST_BYTES; the first call creates the file. */
int sj_spill_append(sj_spill_file *spill, const void *bytes, size_t size);

/* Reads up to SJ_SPILL_MOST_BYTES. */
int sj_spill_read(sj_spill_file *spill, void *bytes, size_t size, int64_t offset);

/* Discards the content; the file is reused. */
void sj_spill_clear(sj_spill_file *spill);

void sj_spill_close(sj_spill_file *spill); /* safe on a zeroed one */

#endif
