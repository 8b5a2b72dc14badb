/* Chooses how many heap blocks can be guarded at once if the policy does not specify it. */
#ifndef SJ_AGENT_ZOMBIES_ZOMBIE_CAPACITY_H
#define SJ_AGENT_ZOMBIES_ZOMBIE_CAPACITY_H

#include "agent/abi/zombies.h"

/* Sets `slots` and `memory_kib` if they are 0.
 * - If both are 0, blocks and their records use at most a sixteenth of `free_bytes`.
 * - If only `slots` is 0, it becomes the number of pages in `memory_kib`.
 * - If only `memory_kib` is 0, it becomes enough for `slots` blocks of one page each, but at least
 *   64 MiB.
 * If the function sets `slots`, the value is at least 4,096 and at most 131,072. Then it also sets
 * `freed_slots`, so that a program with few live blocks uses few slots. */
void sj_zombie_capacity_choose(sj_zombie_settings *settings, uint64_t free_bytes);

#endif
