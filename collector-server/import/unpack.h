/* Decompresses the gzip and zlib data in files of other tools. */
#ifndef SJ_COLLECTOR_SERVER_IMPORT_UNPACK_H
#define SJ_COLLECTOR_SERVER_IMPORT_UNPACK_H

#include "proto/base/cursor.h"
#include "proto/base/status.h"

/* True if the bytes begin like gzip data. */
bool sj_unpack_is_gzip(sj_slice packed);

/* Decompresses gzip or zlib data into memory, which the caller frees. Returns SJ_ECORRUPT if the
 * data is damaged or cut, SJ_ELIMIT if it unpacks to more than `most` bytes, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_unpack(sj_slice packed, size_t most, uint8_t **bytes, size_t *size);

/* Decompresses the first bytes, up to `capacity`. Returns how many there are; 0 after an error. */
size_t sj_unpack_head(sj_slice packed, uint8_t *bytes, size_t capacity);

#endif
