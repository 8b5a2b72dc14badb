/* Finds out whether memory is short on this machine or for a process. */
#ifndef SJ_AGENT_ZOMBIES_PRESSURE_H
#define SJ_AGENT_ZOMBIES_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Bits of facts that could not be read: waiting tasks, the machine's memory, the control group. */
enum { SJ_PRESSURE_NO_WAITING = 1, SJ_PRESSURE_NO_MACHINE = 2, SJ_PRESSURE_NO_GROUP = 4 };

/* True if memory is short, which means that any of these is true:
 * - Tasks have waited for memory for 10 % of the last 10 s (/proc/pressure/memory).
 * - Less than a twentieth of the machine's memory is available.
 * - Less than a tenth is left of a memory limit of the process or of its control group.
 *
 * Ignores facts that cannot be read, and writes their bits to `*unseen`. `root` is the folder that
 * contains /proc and /sys; it is "" except in tests. Blocks while it reads files there. */
bool sj_pressure_is_high(const char *root, pid_t pid, uint32_t *unseen);

/* Returns how many bytes the process can still allocate: the smallest of these numbers.
 * - The memory that is available on the machine.
 * - The rest of the commit limit, if the machine does not overcommit.
 * - The rest of the limits of the process and of its control group.
 *
 * Ignores numbers that cannot be read. Returns UINT64_MAX if no number can be read. `root` is that
 * of sj_pressure_is_high. Blocks while it reads files there. */
uint64_t sj_pressure_free_bytes(const char *root, pid_t pid);

#endif
