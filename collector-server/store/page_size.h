/* The page size of a database: large while calls are stored in it, small in a small recording. */
#ifndef SJ_COLLECTOR_SERVER_STORE_PAGE_SIZE_H
#define SJ_COLLECTOR_SERVER_STORE_PAGE_SIZE_H

#include <sqlite3.h>

/* sj_database_pack makes the file of a recording that has ended small, if it is not large (32 MB),
 * and takes its log away: it is one file then, which readers leave as it is. Nobody may have it
 * open; nothing happens when somebody has, or the disk is full. */
void sj_database_pack(const char *path);

/* sj_database_unpack gives a packed database that is opened to store calls its large pages again.
 * Nothing happens when somebody else has it open. */
void sj_database_unpack(sqlite3 *database);

#endif
