/* Finds out if memory is short on this machine, or for a process. */
#ifndef SJ_AGENT_ZOMBIES_PRESSURE_H
#define SJ_AGENT_ZOMBIES_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Facts that the kernel did not tell, as bits. */
enum { SJ_PRESSURE_NO_WAITING = 1, SJ_PRESSURE_NO_MACHINE = 2, SJ_PRESSURE_NO_GROUP = 4 };

/* True if memory is short. That is so if tasks wait for memory (/proc/pressure/memory), or if less
 * than a twentieth of the machine's memory is available. It is also so if less than a tenth is left
 * of what the limits of the process, or its control group, allow. Facts that the kernel does not
 * tell do not count; they are written to `*unseen`. `root` is the folder that contains /proc and
 * /sys: "" except in tests. Blocking: reads some of these files. */
bool sj_pressure_is_high(const char *root, pid_t pid, uint32_t *unseen);

/* Returns how many bytes the process can still have: the least of what is available on the machine,
 * and what is left of the limits of its control group and of the process. If the machine does not
 * overcommit, what is left of its commit limit counts, too. Facts that the kernel does
 * not tell do not count. Returns UINT64_MAX if the kernel tells none. `root` and blocking are as
 * above. */
uint64_t sj_pressure_free_bytes(const char *root, pid_t pid);

#endif
