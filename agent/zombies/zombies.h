/* The recorder's part of the heap monitor. It creates the region (agent/abi/zombies.h) of each
 * process of a session. It sends the reports in the regions as reports of the monitor "zombies".
 * Thread-safe: one thread adds processes, another thread polls. */
#ifndef SJ_AGENT_ZOMBIES_ZOMBIES_H
#define SJ_AGENT_ZOMBIES_ZOMBIES_H

#include "agent/abi/zombies.h"
#include "agent/session/frame_writer.h"

#include <sys/types.h>

typedef struct sj_zombies sj_zombies;

typedef struct sj_zombies_options {
    const char *runtime_directory; /* Borrowed. */
    const char *cache_directory;   /* Folder of cached plans, borrowed; NULL for no cache. */
    sj_frame_writer *writer;       /* Borrowed. */
    sj_zombie_settings settings;
} sj_zombies_options;

/* Creates a monitor without processes. Returns SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_zombies_new(const sj_zombies_options *options, sj_zombies **zombies);

/* Adds a process, before the agent maps its region. Creates the region if the settings need one. If
 * that fails, the process is not monitored, and this is reported. Blocks for up to about 100 ms
 * when it makes the patch plan of a C library for the first time. */
void sj_zombies_join(sj_zombies *zombies, uint64_t process, pid_t pid, const char *arena_name);

/* Adds a process with the region that a killed recorder created for it. Ignores a missing or
 * damaged region. A report that the killed recorder was sending may be sent twice. */
void sj_zombies_adopt(sj_zombies *zombies, uint64_t process, const char *arena_name);

/* Changes the settings of all processes: the share of guarded allocations (none if `one_in` is 0),
 * the reaction to a use, the limit of reports per minute, and the rules. A use is an access to
 * freed memory. Does not change the number of blocks and the size of stacks in processes that are
 * monitored already. Creates the regions of other processes. Blocks like sj_zombies_join. */
void sj_zombies_set(sj_zombies *zombies, const sj_zombie_settings *settings);

/* If memory is short for a process (pressure.h), asks its agent to halve the memory of freed blocks
 * at its next guarded allocation. If the agent has not done so since an earlier call, instead
 * writes the process to `idle`. Writes at most `capacity` processes. Returns how many processes it
 * has written. */
size_t sj_zombies_relieve(sj_zombies *zombies, pid_t *idle, size_t capacity);

/* Returns the reason why allocated bytes cannot be counted in a process although the settings ask
 * for it. Returns NULL if they are counted, or if the settings do not ask for it. */
const char *sj_zombies_not_counted(sj_zombies *zombies, pid_t pid);

/* Sends all complete reports, checks the overhead budgets, and searches new modules for the
 * functions whose allocations are always guarded (guard_sites.h). */
void sj_zombies_poll(sj_zombies *zombies);

/* Sends the last reports of a process that has ended, and a summary. The summary says what was
 * monitored, what was not, and why. Removes the process. */
void sj_zombies_end(sj_zombies *zombies, uint64_t process);

/* Returns the time, in ticks, that monitoring has cost in the programs so far, as the agents
 * measured it. Returns 0 if `zombies` is NULL. */
uint64_t sj_zombies_watch_ticks(sj_zombies *zombies);

/* Frees the monitor and removes all regions. `zombies` may be NULL. */
void sj_zombies_free(sj_zombies *zombies);

#endif
