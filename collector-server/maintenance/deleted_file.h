/* Finds processes that still use a file that was deleted. */
#ifndef SJ_COLLECTOR_SERVER_MAINTENANCE_DELETED_FILE_H
#define SJ_COLLECTOR_SERVER_MAINTENANCE_DELETED_FILE_H

#include <sys/types.h>

/* Returns a process that has a deleted file open whose name was `path`; 0 if there is none. Finds
 * only processes whose descriptors this user may list. Thread-safe. Blocks while it reads /proc. */
pid_t sj_deleted_file_holder(const char *path);

#endif
