/* CRC-32C, the checksum of frames, blocks, spool records and plans. */
#ifndef SJ_PROTO_BASE_CRC32C_H
#define SJ_PROTO_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues a CRC-32C (Castagnoli, RFC 3720 B.4) over `size` bytes and returns it. Start with `crc`
 * 0. Uses the SSE4.2 or ARMv8 instruction if the CPU has it. Thread-safe. */
uint32_t sj_crc32c(uint32_t crc, const void *bytes, size_t size);

/* Returns the same as sj_crc32c, computed from a table. CPUs without the instruction use it, and
 * tests compare with it. */
uint32_t sj_crc32c_portable(uint32_t crc, const void *bytes, size_t size);

#endif
