/* A table of descriptors of its own for the calling thread. */
#ifndef SJ_AGENT_DIRECT_OWN_DESCRIPTORS_H
#define SJ_AGENT_DIRECT_OWN_DESCRIPTORS_H

#include "proto/base/error.h"

/* sj_own_descriptors separates the thread's descriptors from those of the process and closes all:
 * what it opens takes no number of the program's, is closed by nobody else and is inherited by no
 * child, and what the program closes is closed. 0 becomes /dev/null; 1 and 2, for messages of
 * libraries and the log, `log` (made when it is not there, emptied when it is larger than 1 MiB),
 * or /dev/null when that cannot be opened. SJ_EUNSUPPORTED: the system does not allow it; nothing
 * was changed. SJ_EIO: there is no /dev/null. */
SJ_MUST_CHECK sj_status sj_own_descriptors(const char *log, sj_error *error);

#endif
