/* The recorder's half of the monitor of freed memory. It creates the zombie regions
 * (agent/abi/zombies.h) of a session's processes, and sends what their monitors write as reports of
 * the monitor "zombies". Two threads use it: one adds processes, the other one polls. */
#ifndef SJ_AGENT_ZOMBIES_ZOMBIES_H
#define SJ_AGENT_ZOMBIES_ZOMBIES_H

#include "agent/abi/zombies.h"
#include "agent/session/frame_writer.h"

#include <sys/types.h>

typedef struct sj_zombies sj_zombies;

typedef struct sj_zombies_options {
    const char *runtime_directory; /* Borrowed. */
    const char *cache_directory;   /* Folder of cached plans; borrowed. NULL: no cache. */
    sj_frame_writer *writer;       /* Borrowed. */
    sj_zombie_settings settings;
} sj_zombies_options;

/* Creates it without processes. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_zombies_new(const sj_zombies_options *options, sj_zombies **zombies);

/* Adds a process that is about to map its region. Creates the region if something is to be watched.
 * If that fails, the process is not monitored, and that is reported. Blocking: up to some 100 ms
 * when the C library is planned for the first time. */
void sj_zombies_join(sj_zombies *zombies, uint64_t process, pid_t pid, const char *arena_name);

/* Takes over the region that a killed recorder created for a process. A missing or damaged region
 * is left out. A report that was being sent at the kill may be sent twice. */
void sj_zombies_adopt(sj_zombies *zombies, uint64_t process, const char *arena_name);

/* Changes the settings of all processes for their next decisions: how many allocations are guarded,
 * what follows a use, and how many reports a minute are made. With one_in 0 no more are guarded. In
 * processes that are watched already, the number of blocks and the size of stacks do not change.
 * Other processes get their regions. Blocking like sj_zombies_join. */
void sj_zombies_set(sj_zombies *zombies, const sj_zombie_settings *settings);

/* Asks every process for which memory is short (pressure.h) to halve the memory of its freed blocks
 * at its next guarded allocation. Writes the processes that have not followed the last request,
 * because they are idle, to `idle`, at most `capacity`. Returns their number. */
size_t sj_zombies_relieve(sj_zombies *zombies, pid_t *idle, size_t capacity);

/* Returns the reason why the allocations of a process are not counted although the settings ask for
 * it. Returns NULL if they are counted, or if the settings do not ask. */
const char *sj_zombies_not_counted(sj_zombies *zombies, pid_t pid);

/* Sends the complete reports. */
void sj_zombies_poll(sj_zombies *zombies);

/* Sends the last reports of a process that has ended. Then sends its summary: what was watched,
 * what was not, and why. */
void sj_zombies_end(sj_zombies *zombies, uint64_t process);

/* Returns how many ticks watching has taken of the programs' own time so far, as measured by their
 * monitors. Returns 0 for NULL. Thread-safe. */
uint64_t sj_zombies_watch_ticks(sj_zombies *zombies);

/* Frees it and removes the regions. NULL is allowed. */
void sj_zombies_free(sj_zombies *zombies);

#endif
