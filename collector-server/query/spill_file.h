/* A nameless file for what a query cannot hold in memory: appended to, then read.
 *
 * It lies where SQLite puts its own temporary files (SQLITE_TMPDIR, TMPDIR, /var/tmp, /tmp) and is
 * gone when it is closed or the process ends, however that ends. SQLite result codes: SQLITE_FULL
 * when the disk is. One thread at a time. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SPILL_FILE_H
#define SJ_COLLECTOR_SERVER_QUERY_SPILL_FILE_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_SPILL_MOST_BYTES = 65536 }; /* at once: SQLite's files take less than 128 KiB */

typedef struct sj_spill_file {
    sqlite3_file *file; /* NULL: nothing was written yet */
    int64_t size;
} sj_spill_file;

/* sj_spill_append writes up to SJ_SPILL_MOST_BYTES behind what is there; the file is made when it
 * is the first. */
int sj_spill_append(sj_spill_file *spill, const void *bytes, size_t size);

/* sj_spill_read reads up to SJ_SPILL_MOST_BYTES of what was appended. */
int sj_spill_read(sj_spill_file *spill, void *bytes, size_t size, int64_t offset);

/* sj_spill_clear discards all that was written; the file is reused. */
void sj_spill_clear(sj_spill_file *spill);

void sj_spill_close(sj_spill_file *spill); /* safe on a zeroed one */

#endif
