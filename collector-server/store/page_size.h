/* The page size of a database: large while calls are being stored in it, small in a small finished
 * recording. */
#ifndef SJ_COLLECTOR_SERVER_STORE_PAGE_SIZE_H
#define SJ_COLLECTOR_SERVER_STORE_PAGE_SIZE_H

#include <sqlite3.h>

/* Removes the log of a finished recording. If the file is at most 32 MB, also gives it smaller
 * pages. Afterwards the recording is a single file, and readers create no files beside it. Does
 * nothing if a process has the file open. Keeps the large pages if the disk is full. */
void sj_database_pack(const char *path);

/* Gives a packed database its large pages again, before calls are stored in it. Does nothing if
 * another connection has it open. */
void sj_database_unpack(sqlite3 *database);

#endif
