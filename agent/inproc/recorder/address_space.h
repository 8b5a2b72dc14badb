/* How much of the address space the arena takes. */
#ifndef SJ_AGENT_INPROC_RECORDER_ADDRESS_SPACE_H
#define SJ_AGENT_INPROC_RECORDER_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stdint.h>

/* sj_address_space_limit returns the bytes that the process may map; UINT64_MAX: as many as there
 * are, or unknown. Makes a system call. */
uint64_t sj_address_space_limit(void);

/* sj_address_space_threads returns for how many of `threads` an arena takes at most an eighth of
 * `limit_bytes`: at least the slots of one page, if there are so many. Pure. */
uint32_t sj_address_space_threads(uint32_t threads, uint32_t chunks_per_thread,
                                  uint64_t limit_bytes);

/* sj_address_space_is_enough: an arena takes at most an eighth of `limit_bytes`. Pure. */
bool sj_address_space_is_enough(uint32_t threads, uint32_t chunks_per_thread, uint64_t limit_bytes);

#endif
