/* The monitor of freed memory (agent/abi/zombies.h) is put into a process that runs. */
#ifndef SJ_AGENT_LIVEPATCH_HEAP_WATCH_H
#define SJ_AGENT_LIVEPATCH_HEAP_WATCH_H

#include "proto/base/error.h"

#include <stdbool.h>
#include <sys/types.h>

/* sj_heap_watch has the agent in the process `pid`, launched by `record` or attached to, whose
 * zombie region has been made, watch what the region's settings ask for, and, `with_heap`, patches
 * the allocator's entries; a process that has them is a success. The link
 * must be served meanwhile. Blocking: milliseconds. One thread, which may trace the process.
 * SJ_EUNSUPPORTED the monitor has refused, the region says why, or entries could not be written;
 * SJ_ENOTFOUND no agent is in it, SJ_EPERM, SJ_EAGAIN it loads modules all the time, SJ_ECLOSED it
 * has ended, SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_heap_watch(pid_t pid, bool with_heap, sj_error *error);

/* sj_heap_shrink makes a watched process halve the memory that its freed blocks keep, also while it
 * idles. Blocking: milliseconds. SJ_EUNSUPPORTED it is not watched; errors as sj_heap_watch. */
SJ_MUST_CHECK sj_status sj_heap_shrink(pid_t pid, sj_error *error);

#endif
