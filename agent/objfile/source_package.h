/* Reads from dpkg's database which files come from the same Debian source package as a program. */
#ifndef SJ_AGENT_OBJFILE_SOURCE_PACKAGE_H
#define SJ_AGENT_OBJFILE_SOURCE_PACKAGE_H

#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* The paths of shared libraries, each between newlines. Zeroed: none. */
typedef struct sj_source_files {
    char *text; /* owned */
    size_t bytes;
    size_t capacity;
} sj_source_files;

enum { SJ_PACKAGE_NAME_BYTES = 256 };

/* Finds the installed package that contains the file `path`. `database` is dpkg's folder, usually
 * /var/lib/dpkg. Blocks on the file system. Thread-safe. Returns SJ_ENOTFOUND if the database is
 * missing, or if no package contains the file. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_owning_package_find(const char *database, const char *path,
                                               char package[SJ_PACKAGE_NAME_BYTES]);

/* Reads the paths of all shared libraries that the source package of `program` installs. `database`
 * is dpkg's folder, usually /var/lib/dpkg. `files` must be zeroed. Blocks on the file system: reads
 * the list of files of each installed package. Thread-safe. Returns SJ_ENOTFOUND if the database is
 * missing, or if no package contains the program. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_source_files_read(const char *database, const char *program,
                                             sj_source_files *files);

/* True if one of the paths is `path`. A path below /usr is the same file as the path without it,
 * because Debian's /bin and /lib are links into /usr. */
bool sj_source_files_has(const sj_source_files *files, const char *path);

/* Frees the paths. A zeroed structure is allowed. */
void sj_source_files_deinit(sj_source_files *files);

#endif
