#include "collector-server/import/source.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)
#define HASH_FACTOR UINT64_C(0x100000001b3)
#define OTHER_FACTOR UINT64_C(0x9e3779b97f4a7c15)

void sj_source_init(sj_source *source, FILE *file, const char *path, sj_error *error)
{
    source->file = file;
    source->path = path;
    source->error = error;
    source->offset = 0;
    source->at = source->size = 0;
    source->hash[0] = HASH_BEGIN;
    source->hash[1] = ~HASH_BEGIN;
}

/* Adds eight bytes at a time: a byte at a time would take longer than parsing. */
static void hash_bytes(uint64_t hash[2], const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, size - i < sizeof(word) ? size - i : sizeof(word));
        hash[0] = (hash[0] ^ word) * HASH_FACTOR;
        hash[0] ^= hash[0] >> 29;
        hash[1] = (hash[1] ^ word) * OTHER_FACTOR;
        hash[1] ^= hash[1] >> 32;
    }
    hash[0] = (hash[0] ^ size) * HASH_FACTOR;
}

int sj_source_peek_slow(sj_source *source)
{
    if (source->size != 0) {
        hash_bytes(source->hash, source->bytes, source->size);
    }
    source->offset += source->size;
    source->at = 0;
    source->size = fread(source->bytes, 1, sizeof(source->bytes), source->file);
    return source->size != 0 ? source->bytes[0] : SJ_SOURCE_END;
}

sj_slice sj_source_head(sj_source *source)
{
    (void)sj_source_peek(source);
    return (sj_slice){.data = source->bytes, .size = source->size};
}

sj_status sj_source_line(sj_source *source, char *line, size_t capacity, size_t *size,
                         bool *is_line)
{
    size_t count = 0;
    int byte = sj_source_get(source);
    *is_line = byte != SJ_SOURCE_END;
    while (byte != SJ_SOURCE_END && byte != '\n') {
        if (count + 1 >= capacity) {
            return sj_source_fail(source, SJ_ELIMIT, sj_source_offset(source),
                                  "the line is longer than %zu bytes", capacity);
        }
        line[count++] = (char)byte;
        byte = sj_source_get(source);
    }
    count -= count != 0 && line[count - 1] == '\r' ? 1 : 0;
    line[count] = '\0';
    *size = count;
    return SJ_OK;
}

sj_status sj_source_bytes(sj_source *source, void *bytes, size_t size, const char *what)
{
    uint8_t *to = bytes;
    while (size != 0) {
        if (sj_source_peek(source) == SJ_SOURCE_END) {
            return sj_source_fail(source, SJ_ECORRUPT, sj_source_offset(source),
                                  "the file ends in %s", what);
        }
        const size_t left = source->size - source->at;
        const size_t count = size < left ? size : left;
        memcpy(to, source->bytes + source->at, count);
        source->at += count;
        to += count;
        size -= count;
    }
    return SJ_OK;
}

sj_status sj_source_rest(sj_source *source, size_t most, uint8_t **bytes, size_t *size)
{
    size_t capacity = sizeof(source->bytes);
    size_t count = 0;
    uint8_t *made = malloc(capacity);
    while (made != NULL && sj_source_peek(source) != SJ_SOURCE_END) {
        const size_t more = source->size - source->at;
        if (more > most - count) {
            free(made);
            return sj_source_fail(source, SJ_ELIMIT, sj_source_offset(source),
                                  "the file is larger than %zu MB", most >> 20);
        }
        if (more > capacity - count) {
            capacity *= 2;
            uint8_t *larger = realloc(made, capacity);
            if (larger == NULL) {
                free(made);
                return SJ_ENOMEM;
            }
            made = larger;
        }
        memcpy(made + count, source->bytes + source->at, more);
        count += more;
        source->at = source->size;
    }
    *bytes = made;
    *size = count;
    return made != NULL ? SJ_OK : SJ_ENOMEM;
}

sj_status sj_source_end(sj_source *source, const char *format, sj_session_id *session)
{
    while (sj_source_peek(source) != SJ_SOURCE_END) {
        source->at = source->size;
    }
    if (ferror(source->file) != 0) {
        return sj_fail(source->error, SJ_EIO, "cannot read %s: %s", source->path, strerror(errno));
    }
    hash_bytes(source->hash, (const uint8_t *)format, strlen(format));
    memcpy(session->bytes, source->hash, sizeof(session->bytes));
    return SJ_OK;
}

sj_status sj_source_fail(const sj_source *source, sj_status status, uint64_t offset,
                         const char *format, ...)
{
    char text[SJ_ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return sj_fail(source->error, status, "%s, byte %llu: %s", source->path,
                   (unsigned long long)offset, text);
}
