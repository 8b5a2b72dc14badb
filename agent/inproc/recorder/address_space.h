/* Limits how much of the address space the arena takes. */
#ifndef SJ_AGENT_INPROC_RECORDER_ADDRESS_SPACE_H
#define SJ_AGENT_INPROC_RECORDER_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the number of bytes that the process may map; UINT64_MAX: unlimited or unknown. Makes a
 * system call. */
uint64_t sj_address_space_limit(void);

/* Returns a number of thread slots whose arena takes at most an eighth of `limit_bytes`. Starts
 * with `threads` and halves the number until they fit, but not below the slots of one page. Returns
 * `threads` if that is fewer. Pure. */
uint32_t sj_address_space_threads(uint32_t threads, uint32_t chunks_per_thread,
                                  uint64_t limit_bytes);

/* True if an arena of this size takes at most an eighth of `limit_bytes`. Pure. */
bool sj_address_space_is_enough(uint32_t threads, uint32_t chunks_per_thread, uint64_t limit_bytes);

#endif
