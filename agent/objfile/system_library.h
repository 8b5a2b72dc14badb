/* Where the system keeps its libraries. */
#ifndef SJ_AGENT_OBJFILE_SYSTEM_LIBRARY_H
#define SJ_AGENT_OBJFILE_SYSTEM_LIBRARY_H

#include <stdbool.h>

/* sj_is_system_library returns whether a path lies in one of the system's folders of libraries. Any
 * thread. */
bool sj_is_system_library(const char *path);

#endif
