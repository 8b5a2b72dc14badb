/* Whether memory is short on this machine, or for a process. */
#ifndef SJ_AGENT_ZOMBIES_PRESSURE_H
#define SJ_AGENT_ZOMBIES_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What could not be asked, bits. */
enum { SJ_PRESSURE_NO_WAITING = 1, SJ_PRESSURE_NO_MACHINE = 2, SJ_PRESSURE_NO_GROUP = 4 };

/* sj_pressure_is_high asks the kernel: tasks wait for memory (/proc/pressure/memory), less than a
 * twentieth of the machine's memory is available, or less than a tenth of what the process, by its
 * limits of addresses and data, or its control group may have. What the kernel does not say, or
 * forbids, does not count, and is named by
 * `*unseen`: memory is then short by what is left. `root` is "" but in tests: the folder that /proc
 * and /sys lie in. Blocking: some reads of such files. */
bool sj_pressure_is_high(const char *root, pid_t pid, uint32_t *unseen);

#endif
