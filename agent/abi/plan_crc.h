/* The checksum of plan files. */
#ifndef SJ_AGENT_ABI_PLAN_CRC_H
#define SJ_AGENT_ABI_PLAN_CRC_H

#include <stddef.h>
#include <stdint.h>

/* sj_plan_crc is the CRC-32C of a plan file with its crc32c field taken as 0. `size_bytes` is at
 * least that of the header. Freestanding; any thread. */
uint32_t sj_plan_crc(const void *bytes, size_t size_bytes);

#endif
