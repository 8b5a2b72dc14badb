/* Recognizes libraries of the system by their paths. */
#ifndef SJ_AGENT_OBJFILE_SYSTEM_LIBRARY_H
#define SJ_AGENT_OBJFILE_SYSTEM_LIBRARY_H

#include <limits.h>
#include <stdbool.h>

/* True if a path is in one of the system's folders of libraries. Thread-safe. */
bool sj_is_system_library(const char *path);

/* Converts the path of a module, as the program loaded it, to the path of the real file, in place.
 * Resolves links and ".." in the folder, but keeps the file name, because users select modules by
 * file name. If the file itself is a link into or out of the system's folders, the path becomes the
 * link's target. If this process cannot see the file, the path stays as it is. Blocks on the file
 * system. Thread-safe. */
void sj_real_module_path(char path[PATH_MAX]);

#endif
