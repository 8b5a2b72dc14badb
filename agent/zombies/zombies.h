/* Uses of freed memory: makes the zombie regions (agent/abi/zombies.h) of a session's processes,
 * and turns what their monitors write into reports of the monitor "zombies". Two threads: one that
 * lets processes join, one that polls. */
#ifndef SJ_AGENT_ZOMBIES_ZOMBIES_H
#define SJ_AGENT_ZOMBIES_ZOMBIES_H

#include "agent/abi/zombies.h"
#include "agent/session/frame_writer.h"

#include <sys/types.h>

typedef struct sj_zombies sj_zombies;

typedef struct sj_zombies_options {
    const char *runtime_directory; /* borrowed */
    const char *cache_directory;   /* of plans; borrowed; NULL: none */
    sj_frame_writer *writer;       /* borrowed */
    sj_zombie_settings settings;
} sj_zombies_options;

/* sj_zombies_new makes it of no process. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_zombies_new(const sj_zombies_options *options, sj_zombies **zombies);

/* sj_zombies_join adds a process that is about to map its region, which is made if something is to
 * be watched. A process that gets none is not monitored; that is reported. Blocking: up to some 100
 * ms, when the C library is planned for the first time. */
void sj_zombies_join(sj_zombies *zombies, uint64_t process, pid_t pid, const char *arena_name);

/* sj_zombies_adopt takes over the region that a killed recorder made for a process; one that is not
 * there or not sound is left out. A report that was being sent when it was killed may come twice.
 */
void sj_zombies_adopt(sj_zombies *zombies, uint64_t process, const char *arena_name);

/* sj_zombies_set changes how many allocations are guarded, what follows a use and how many reports
 * a minute are made, in all processes from their next decisions on; one_in 0: none is guarded any
 * more. Blocks and stacks keep their number and size in processes that are watched already; the
 * others get their regions. Blocking as sj_zombies_join. */
void sj_zombies_set(sj_zombies *zombies, const sj_zombie_settings *settings);

/* sj_zombies_relieve has every process for which memory is short (pressure.h) halve what its freed
 * blocks keep, at its next guarded allocation. Returns how many processes have not done so since
 * the call before, because they idle: their numbers, at most `capacity`, are written to `idle`. */
size_t sj_zombies_relieve(sj_zombies *zombies, pid_t *idle, size_t capacity);

/* sj_zombies_not_counted returns why what a process allocates is not counted, though the settings
 * ask for it; NULL: it is, or nobody asks. */
const char *sj_zombies_not_counted(sj_zombies *zombies, pid_t pid);

/* sj_zombies_poll sends the reports that are complete. */
void sj_zombies_poll(sj_zombies *zombies);

/* sj_zombies_end sends the last reports of a process that has ended, and its account: what was
 * watched, and what was not and why. */
void sj_zombies_end(sj_zombies *zombies, uint64_t process);

/* sj_zombies_watch_ticks returns how many ticks of the programs' own time watching has taken so
 * far, as their monitors measured it; NULL: 0. Thread-safe. */
uint64_t sj_zombies_watch_ticks(sj_zombies *zombies);

/* sj_zombies_free; NULL is allowed. */
void sj_zombies_free(sj_zombies *zombies);

#endif
