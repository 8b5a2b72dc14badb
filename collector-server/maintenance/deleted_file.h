/* Finds processes that still use a database that was deleted or renamed. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_DELETED_FILE_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_DELETED_FILE_H

#include <sys/types.h>

/* Returns the id of a process that has a file open that was deleted and had the name `path`. A
 * process that has the log of such a database open counts, too: a log keeps its name when its
 * database is renamed. Returns 0 if there is none. Finds only processes whose descriptors this user
 * may list. Thread-safe. Blocks while it reads /proc. */
pid_t sj_deleted_file_holder(const char *path);

#endif
