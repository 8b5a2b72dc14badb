/* Bounds-checked reading and writing of byte ranges. All bytes from outside are parsed with it.
 *
 * A reader or writer never leaves its range. The first access beyond the range sets `bad`. From
 * then on every read returns zero and every write does nothing. So a parser reads a whole structure
 * and checks `bad` once. Integers are little-endian and may be unaligned.
 *
 * Does not allocate or lock, so it may be used in any context. A cursor belongs to one thread. */
#ifndef SJ_PROTO_BASE_CURSOR_H
#define SJ_PROTO_BASE_CURSOR_H

#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct sj_slice {
    const uint8_t *data; /* borrowed */
    size_t size;         /* bytes */
} sj_slice;

typedef struct sj_reader {
    const uint8_t *at;
    const uint8_t *end;
    bool bad;
} sj_reader;

typedef struct sj_writer {
    uint8_t *start;
    uint8_t *at;
    uint8_t *end;
    bool bad;
} sj_writer;

static inline sj_reader sj_reader_of(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    /* `bytes + 0` would be undefined behaviour for NULL, which is a valid empty range. */
    return (sj_reader){.at = bytes, .end = size != 0 ? bytes + size : bytes, .bad = false};
}

static inline size_t sj_reader_left(const sj_reader *reader)
{
    return (size_t)(reader->end - reader->at);
}

/* Returns the next `size` bytes, borrowed. If fewer are left, returns NULL and sets `bad`. */
static inline const uint8_t *sj_read_bytes(sj_reader *reader, size_t size)
{
    if (reader->bad || sj_reader_left(reader) < size) {
        reader->bad = true;
        return NULL;
    }
    const uint8_t *taken = reader->at;
    if (size != 0) {
        reader->at += size;
    }
    return taken;
}

static inline uint8_t sj_read_u8(sj_reader *reader)
{
    const uint8_t *bytes = sj_read_bytes(reader, 1);
    return bytes != NULL ? bytes[0] : 0;
}

static inline uint16_t sj_read_u16(sj_reader *reader)
{
    const uint8_t *bytes = sj_read_bytes(reader, 2);
    return bytes != NULL ? (uint16_t)(bytes[0] | bytes[1] << 8) : 0;
}

static inline uint32_t sj_read_u32(sj_reader *reader)
{
    uint32_t value = 0;
    const uint8_t *bytes = sj_read_bytes(reader, sizeof(value));
    if (bytes != NULL) {
        memcpy(&value, bytes, sizeof(value));
    }
    return value;
}

static inline uint64_t sj_read_u64(sj_reader *reader)
{
    uint64_t value = 0;
    const uint8_t *bytes = sj_read_bytes(reader, sizeof(value));
    if (bytes != NULL) {
        memcpy(&value, bytes, sizeof(value));
    }
    return value;
}

/* Reads an unsigned LEB128 number. Numbers of more than 64 bits set `bad`. */
static inline uint64_t sj_read_varint(sj_reader *reader)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const uint8_t byte = sj_read_u8(reader);
        if (shift == 63 && byte > 1) {
            break;
        }
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return reader->bad ? 0 : value;
        }
    }
    reader->bad = true;
    return 0;
}

/* Reads a signed number that was stored as the varint (n << 1) ^ (n >> 63). */
static inline int64_t sj_read_zigzag(sj_reader *reader)
{
    const uint64_t raw = sj_read_varint(reader);
    return (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
}

static inline sj_writer sj_writer_of(void *data, size_t size)
{
    uint8_t *bytes = data;
    return (sj_writer){
        .start = bytes, .at = bytes, .end = size != 0 ? bytes + size : bytes, .bad = false};
}

static inline size_t sj_writer_used(const sj_writer *writer)
{
    return (size_t)(writer->at - writer->start);
}

static inline void sj_write_bytes(sj_writer *writer, const void *data, size_t size)
{
    if (writer->bad || (size_t)(writer->end - writer->at) < size) {
        writer->bad = true;
        return;
    }
    if (size != 0) {
        memcpy(writer->at, data, size);
        writer->at += size;
    }
}

static inline void sj_write_u8(sj_writer *writer, uint8_t value)
{
    sj_write_bytes(writer, &value, sizeof(value));
}

static inline void sj_write_u16(sj_writer *writer, uint16_t value)
{
    sj_write_bytes(writer, &value, sizeof(value));
}

static inline void sj_write_u32(sj_writer *writer, uint32_t value)
{
    sj_write_bytes(writer, &value, sizeof(value));
}

static inline void sj_write_u64(sj_writer *writer, uint64_t value)
{
    sj_write_bytes(writer, &value, sizeof(value));
}

static inline void sj_write_varint(sj_writer *writer, uint64_t value)
{
    while (value >= 0x80) {
        sj_write_u8(writer, (uint8_t)(value | 0x80));
        value >>= 7;
    }
    sj_write_u8(writer, (uint8_t)value);
}

static inline void sj_write_zigzag(sj_writer *writer, int64_t value)
{
    sj_write_varint(writer, ((uint64_t)value << 1) ^ (uint64_t)(value >> 63));
}

#endif
