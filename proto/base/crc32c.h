/* CRC-32C, the checksum of frames, blocks, spool records and plans. */
#ifndef SJ_PROTO_BASE_CRC32C_H
#define SJ_PROTO_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* sj_crc32c continues a CRC-32C (Castagnoli, RFC 3720 B.4) over `bytes`; start with 0. Uses the
 * SSE4.2 or ARMv8 instruction where the CPU has it. */
uint32_t sj_crc32c(uint32_t crc, const void *bytes, size_t size);

/* sj_crc32c_portable gives the same as sj_crc32c, from a table: for CPUs without the instruction,
 * and for tests to compare with. */
uint32_t sj_crc32c_portable(uint32_t crc, const void *bytes, size_t size);

#endif
