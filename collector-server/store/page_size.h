/* The page size of a database: large while calls are being stored in it, small in a small finished
 * recording. */
#ifndef SJ_COLLECTOR_SERVER_STORE_PAGE_SIZE_H
#define SJ_COLLECTOR_SERVER_STORE_PAGE_SIZE_H

#include <sqlite3.h>

/* Gives the file of a finished recording small pages if it is at most 32 MB, and removes its log.
 * It is a single file then, which readers leave as it is. Does nothing if any process has the file
 * open, or if the disk is full. */
void sj_database_pack(const char *path);

/* Gives a packed database its large pages again, before calls are stored in it. Does nothing if
 * another connection has it open. */
void sj_database_unpack(sqlite3 *database);

#endif
