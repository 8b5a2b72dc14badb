/* Reads and writes the big-endian numbers of class files. */
#ifndef SJ_AGENT_RUNTIMES_JVM_BIG_ENDIAN_H
#define SJ_AGENT_RUNTIMES_JVM_BIG_ENDIAN_H

#include "proto/base/cursor.h"

static inline uint16_t sj_read_be16(sj_reader *reader)
{
    const uint8_t *bytes = sj_read_bytes(reader, 2);
    return bytes != NULL ? (uint16_t)(bytes[0] << 8 | bytes[1]) : 0;
}

static inline uint32_t sj_read_be32(sj_reader *reader)
{
    const uint32_t high = sj_read_be16(reader);
    return high << 16 | sj_read_be16(reader);
}

/* A growing buffer. A zeroed buffer is empty. If an allocation fails, `bad` becomes true and later
 * bytes are dropped, so the caller may check `bad` once at the end. The caller frees `data` with
 * free(). Not thread-safe. */
typedef struct sj_be_output {
    uint8_t *data;
    size_t size;
    size_t capacity;
    bool bad;
} sj_be_output;

/* The put functions append bytes, or a number. */
void sj_be_put(sj_be_output *output, const void *bytes, size_t size);
void sj_be_put8(sj_be_output *output, uint8_t value);
void sj_be_put16(sj_be_output *output, uint16_t value);
void sj_be_put32(sj_be_output *output, uint32_t value);

/* The set functions replace a number at the offset `at`. They do nothing after the end of the
 * output. */
void sj_be_set16(sj_be_output *output, size_t at, uint16_t value);
void sj_be_set32(sj_be_output *output, size_t at, uint32_t value);

#endif
