/* How many heap blocks are guarded at once if the policy does not say. */
#ifndef SJ_AGENT_ZOMBIES_ZOMBIE_CAPACITY_H
#define SJ_AGENT_ZOMBIES_ZOMBIE_CAPACITY_H

#include "agent/abi/zombies.h"

/* Sets `slots` and `memory_kib` if they are 0. The blocks and their records then use at most a
 * sixteenth of `free_bytes`, but there are at least 4,096 and at most 131,072 of them. With blocks
 * of the policy's own number, the memory suffices for as many blocks of one page. With memory of
 * the policy's own, there are as many blocks as it has pages. Also sets `freed_slots`, so that a
 * program with few live blocks touches few of them. */
void sj_zombie_capacity_choose(sj_zombie_settings *settings, uint64_t free_bytes);

#endif
