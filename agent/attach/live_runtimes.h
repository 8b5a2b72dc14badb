/* Runtimes that a process has loaded, as /proc shows from outside. Any thread. */
#ifndef SJ_AGENT_ATTACH_LIVE_RUNTIMES_H
#define SJ_AGENT_ATTACH_LIVE_RUNTIMES_H

#include <stdbool.h>
#include <sys/types.h>

/* sj_live_runtimes_has_mono returns whether a process runs Mono or embeds it; false also when that
 * cannot be read. */
bool sj_live_runtimes_has_mono(pid_t pid);

#endif
