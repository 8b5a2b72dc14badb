/* Bounds-checked reading and writing of byte ranges: the only way that foreign bytes are parsed.
 *
 * A reader or writer never moves outside its range. The first access that would do so sets `bad`,
 * and from then on every read returns zero and every write does nothing, so a parser may read a
 * whole structure and check once. Multi-byte integers are little-endian, at any alignment.
 * Freestanding: no allocation, no locks; safe from any context, one thread per cursor. */
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
    /* NULL is a fine empty range, but NULL + 0 is undefined */
    return (sj_reader){.at = bytes, .end = size != 0 ? bytes + size : bytes, .bad = false};
}

static inline size_t sj_reader_left(const sj_reader *reader)
{
    return (size_t)(reader->end - reader->at);
}

/* sj_reader_take borrows the next `size` bytes; NULL (and bad) when fewer are left. */
static inline const uint8_t *sj_reader_take(sj_reader *reader, size_t size)
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
    const uint8_t *bytes = sj_reader_take(reader, 1);
    return bytes != NULL ? bytes[0] : 0;
}

static inline uint16_t sj_read_u16(sj_reader *reader)
{
    const uint8_t *bytes = sj_reader_take(reader, 2);
    return bytes != NULL ? (uint16_t)(bytes[0] | bytes[1] << 8) : 0;
}

static inline uint32_t sj_read_u32(sj_reader *reader)
{
    uint32_t value = 0;
    const uint8_t *bytes = sj_reader_take(reader, sizeof(value));
    if (bytes != NULL) {
        memcpy(&value, bytes, sizeof(value));
    }
    return value;
}

static inline uint64_t sj_read_u64(sj_reader *reader)
{
    uint64_t value = 0;
    const uint8_t *bytes = sj_reader_take(reader, sizeof(value));
    if (bytes != NULL) {
        memcpy(&value, bytes, sizeof(value));
    }
    return value;
}

/* sj_read_varint reads an unsigned LEB128 number of at most 64 bits; longer ones are bad. */
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

/* sj_read_zigzag reads a signed number stored as (n << 1) ^ (n >> 63) in a varint. */
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
