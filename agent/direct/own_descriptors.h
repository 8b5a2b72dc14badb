/* A separate descriptor table for the calling thread. */
#ifndef SJ_AGENT_DIRECT_OWN_DESCRIPTORS_H
#define SJ_AGENT_DIRECT_OWN_DESCRIPTORS_H

#include "proto/base/error.h"

/* Gives the calling thread its own descriptor table and closes all descriptors in it. Its files
 * then use no descriptor number of the program. The program cannot close them, and child processes
 * do not inherit them. This table has no copies of the program's descriptors, so a file is closed
 * when the program closes it.
 *
 * Descriptor 0 becomes /dev/null. Descriptors 1 and 2 become the file `log`, for messages of
 * libraries and the log. It is created if needed, and emptied if it is larger than 1 MiB. If it
 * cannot be opened, they become /dev/null.
 *
 * Returns SJ_EUNSUPPORTED if the system does not allow it; nothing was changed then. Returns SJ_EIO
 * if /dev/null cannot be opened. */
SJ_MUST_CHECK sj_status sj_own_descriptors(const char *log, sj_error *error);

#endif
