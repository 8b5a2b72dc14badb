/* The checksum of plan files. */
#ifndef SJ_AGENT_ABI_PLAN_CRC_H
#define SJ_AGENT_ABI_PLAN_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Returns the CRC-32C of a plan file, computed with its crc32c field as 0. `size_bytes` is at least
 * the size of the header. Freestanding; thread-safe. */
uint32_t sj_plan_crc(const void *bytes, size_t size_bytes);

#endif
