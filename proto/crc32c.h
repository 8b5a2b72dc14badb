/* The path of sj_crc32c that needs no special CPU, for tests to compare with. */
#ifndef SJ_PROTO_CRC32C_H
#define SJ_PROTO_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* sj_crc32c_portable gives the same as sj_crc32c (frame.h), from a table. */
uint32_t sj_crc32c_portable(uint32_t crc, const void *bytes, size_t size);

#endif
