/* Starts the monitor of freed memory (agent/abi/zombies.h) in a running process. */
#ifndef SJ_AGENT_LIVEPATCH_HEAP_WATCH_H
#define SJ_AGENT_LIVEPATCH_HEAP_WATCH_H

#include "proto/base/error.h"

#include <stdbool.h>
#include <sys/types.h>

/* Makes the agent in process `pid` watch what the settings of its zombie region ask for. The
 * process was launched by `record` or attached to, and its region exists. With `with_heap`, patches
 * the allocator's entries; entries that are patched already are a success. The link must be served
 * meanwhile. Blocks for milliseconds. Only a thread that may trace the process calls it. Returns
 * SJ_EUNSUPPORTED if the monitor refused (the region says why), or if entries could not be patched.
 * Returns SJ_ENOTFOUND if the process has no agent, SJ_EAGAIN if it loads modules all the time, and
 * SJ_ECLOSED if it has ended. Also returns SJ_EPERM, SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_heap_watch(pid_t pid, bool with_heap, sj_error *error);

/* Makes a watched process halve the memory that its freed blocks keep, even if it is idle. Blocks
 * for milliseconds. Returns SJ_EUNSUPPORTED if the process is not watched. Other errors are those
 * of sj_heap_watch. */
SJ_MUST_CHECK sj_status sj_heap_shrink(pid_t pid, sj_error *error);

#endif
