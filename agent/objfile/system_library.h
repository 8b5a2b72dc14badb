/* Where the system keeps its libraries. */
#ifndef SJ_AGENT_OBJFILE_SYSTEM_LIBRARY_H
#define SJ_AGENT_OBJFILE_SYSTEM_LIBRARY_H

#include <limits.h>
#include <stdbool.h>

/* sj_is_system_library returns whether a path lies in one of the system's folders of libraries. Any
 * thread. */
bool sj_is_system_library(const char *path);

/* sj_real_module_path turns the path by which a program loaded a file into that of the real file,
 * in place: links and ".." in its folder are resolved, and its own name stays, by which people
 * select it. If the file itself is a link into or out of the system's folders, its target counts. A
 * path that this process cannot see stays. Blocks on the file system; any thread. */
void sj_real_module_path(char path[PATH_MAX]);

#endif
