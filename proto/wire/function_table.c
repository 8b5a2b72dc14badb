/* Reads and writes function tables. function_table.h documents the bytes. */
#include "proto/wire/function_table.h"

enum {
    MIN_ENTRY_BYTES = 6, /* offset, size, three byte columns, NUL of the name */
    MAX_FIXED_BYTES = 10 + 5 + 3 + 8,
    WITHOUT_FINGERPRINTS = 1 /* version of a table without fingerprints */
};

/* Skips `count` varints and returns a reader at the first one. Sets `reader->bad` if a varint is
 * above `highest`. */
static sj_reader skip_varints(sj_reader *reader, uint64_t count, uint64_t highest)
{
    const sj_reader column = *reader;
    for (uint64_t i = 0; i < count && !reader->bad; i++) {
        reader->bad |= sj_read_varint(reader) > highest;
    }
    return column;
}

static sj_reader skip_bytes(sj_reader *reader, uint64_t count)
{
    const sj_reader column = *reader;
    sj_read_bytes(reader, count);
    return column;
}

static const char *read_name(sj_reader *reader)
{
    const uint8_t *end = NULL;
    const size_t left = sj_reader_left(reader);
    if (!reader->bad && left != 0) {
        end = memchr(reader->at, 0, left);
    }
    if (end == NULL) {
        reader->bad = true;
        return "";
    }
    return (const char *)sj_read_bytes(reader, (size_t)(end - reader->at) + 1);
}

sj_status sj_function_table_open(sj_slice raw, sj_function_table *table)
{
    memset(table, 0, sizeof(*table));
    if (raw.size > SJ_FUNCTION_TABLE_MAX_BYTES) {
        return SJ_ECORRUPT;
    }
    sj_reader reader = sj_reader_of(raw.data, raw.size);
    const uint64_t version = sj_read_varint(&reader);
    if (!reader.bad && (version == 0 || version > SJ_FUNCTION_TABLE_VERSION)) {
        return SJ_EVERSION;
    }
    const uint64_t count = sj_read_varint(&reader);
    if (reader.bad || count > sj_reader_left(&reader) / MIN_ENTRY_BYTES) {
        return SJ_ECORRUPT;
    }
    table->offsets = skip_varints(&reader, count, UINT64_MAX);
    table->sizes = skip_varints(&reader, count, UINT32_MAX);
    table->techniques = skip_bytes(&reader, count);
    table->skips = skip_bytes(&reader, count);
    table->sources = skip_bytes(&reader, count);
    table->names = reader;
    uint64_t nameless = 0;
    for (uint64_t i = 0; i < count && !reader.bad; i++) {
        nameless += read_name(&reader)[0] == '\0';
    }
    table->has_fingerprints = version > WITHOUT_FINGERPRINTS;
    table->fingerprints = reader;
    if (table->has_fingerprints) {
        sj_read_bytes(&reader, nameless * sizeof(uint64_t));
    }
    if (reader.bad || sj_reader_left(&reader) != 0) {
        memset(table, 0, sizeof(*table));
        return SJ_ECORRUPT;
    }
    table->count = count;
    return SJ_OK;
}

bool sj_function_table_next(sj_function_table *table, sj_function_entry *entry)
{
    if (table->next >= table->count) {
        return false;
    }
    table->next++;
    table->last_offset += (uint64_t)sj_read_zigzag(&table->offsets);
    entry->offset = table->last_offset;
    entry->size_bytes = (uint32_t)sj_read_varint(&table->sizes);
    entry->technique = sj_read_u8(&table->techniques);
    entry->skip = sj_read_u8(&table->skips);
    entry->source = sj_read_u8(&table->sources);
    entry->name = read_name(&table->names);
    entry->fingerprint =
        table->has_fingerprints && entry->name[0] == '\0' ? sj_read_u64(&table->fingerprints) : 0;
    return true;
}

size_t sj_function_table_bound(const sj_function_entry *entries, size_t count)
{
    size_t bytes = 20; /* longest encoding of version and count */
    for (size_t i = 0; i < count; i++) {
        bytes += MAX_FIXED_BYTES + strlen(entries[i].name) + 1;
    }
    return bytes;
}

static bool has_any_fingerprint(const sj_function_entry *entries, size_t count)
{
    bool has_any = false;
    for (size_t i = 0; i < count; i++) {
        has_any = has_any || (entries[i].name[0] == '\0' && entries[i].fingerprint != 0);
    }
    return has_any;
}

sj_status sj_function_table_write(const sj_function_entry *entries, size_t count, uint8_t *output,
                                  size_t capacity, size_t *size_bytes)
{
    sj_writer writer = sj_writer_of(output, capacity);
    uint64_t last_offset = 0;
    const bool has_fingerprints = has_any_fingerprint(entries, count);
    sj_write_varint(&writer, has_fingerprints ? SJ_FUNCTION_TABLE_VERSION : WITHOUT_FINGERPRINTS);
    sj_write_varint(&writer, count);
    for (size_t i = 0; i < count; i++) {
        sj_write_zigzag(&writer, (int64_t)(entries[i].offset - last_offset));
        last_offset = entries[i].offset;
    }
    for (size_t i = 0; i < count; i++) {
        sj_write_varint(&writer, entries[i].size_bytes);
    }
    for (size_t i = 0; i < count; i++) {
        sj_write_u8(&writer, entries[i].technique);
    }
    for (size_t i = 0; i < count; i++) {
        sj_write_u8(&writer, entries[i].skip);
    }
    for (size_t i = 0; i < count; i++) {
        sj_write_u8(&writer, entries[i].source);
    }
    for (size_t i = 0; i < count; i++) {
        sj_write_bytes(&writer, entries[i].name, strlen(entries[i].name) + 1);
    }
    for (size_t i = 0; has_fingerprints && i < count; i++) {
        if (entries[i].name[0] == '\0') {
            sj_write_u64(&writer, entries[i].fingerprint);
        }
    }
    if (writer.bad || sj_writer_used(&writer) > SJ_FUNCTION_TABLE_MAX_BYTES) {
        return SJ_ELIMIT;
    }
    *size_bytes = sj_writer_used(&writer);
    return SJ_OK;
}
