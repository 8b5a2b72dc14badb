/* Design notes. Numbers are stored as differences (DELTA_BINARY_PACKED), because ids and times
 * ascend. Each text is stored once, in a dictionary of the chunk. A chunk has one page of values.
 * Encodings: https://parquet.apache.org/docs/file-format/data-pages/encodings/ */
#include "collector-server/export/parquet_pages.h"

#include "proto/base/utf8_text.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_DATA = 0, PAGE_DICTIONARY = 2 };
enum { DELTA_BLOCK = 128, DELTA_MINIBLOCKS = 4, DELTA_MINI = DELTA_BLOCK / DELTA_MINIBLOCKS };
enum { ZSTD_LEVEL = 3 };

sj_status sj_parquet_pages_open(sj_parquet_pages *pages, uint32_t function_count)
{
    const size_t places = (size_t)function_count + SJ_CALL_ENDINGS;
    *pages = (sj_parquet_pages){.compressor = ZSTD_createCCtx(),
                                .present = malloc(SJ_CALL_BATCH_ROWS * sizeof(*pages->present)),
                                .entries = calloc(places, sizeof(*pages->entries)),
                                .used = calloc(places, sizeof(*pages->used))};
    return pages->compressor != NULL && pages->present != NULL && pages->entries != NULL &&
                   pages->used != NULL
               ? SJ_OK
               : SJ_ENOMEM;
}

void sj_parquet_pages_close(sj_parquet_pages *pages)
{
    ZSTD_freeCCtx(pages->compressor);
    sj_byte_buffer_deinit(&pages->out);
    sj_byte_buffer_deinit(&pages->page);
    sj_byte_buffer_deinit(&pages->head);
    free(pages->present);
    free(pages->entries);
    free(pages->used);
    *pages = (sj_parquet_pages){0};
}

/* Appends the lowest `width` bits of a number to a bit stream that is written at `at`. `*word`
 * holds the last `*filled` bits of the stream, which are not written yet. Returns the next
 * position. */
static uint8_t *pack(uint8_t *at, uint64_t value, unsigned width, uint64_t *word, unsigned *filled)
{
    *word |= value << *filled;
    if (*filled + width < 64) {
        *filled += width;
        return at;
    }
    memcpy(at, word, sizeof(*word)); /* all supported machines are little-endian */
    const unsigned used_bits = 64 - *filled;
    *word = used_bits < 64 ? value >> used_bits : 0;
    *filled = width - used_bits;
    return at + sizeof(*word);
}

/* Appends `count` numbers of `width` bits; `count` is a multiple of 8. */
static void put_packed(sj_byte_buffer *out, const uint64_t *values, size_t count, unsigned width)
{
    const size_t bytes = count / 8 * width;
    uint8_t *at = sj_byte_buffer_add(out, bytes + 8);
    if (at == NULL) {
        return;
    }
    uint64_t word = 0;
    unsigned filled = 0;
    for (size_t i = 0; i < count && width != 0; ++i) {
        at = pack(at, values[i], width, &word, &filled);
    }
    memcpy(at, &word, (filled + 7) / 8);
    out->size -= 8;
}

static unsigned bit_width(uint64_t value)
{
    return value == 0 ? 0 : 64 - (unsigned)__builtin_clzll(value);
}

/* Appends `count` differences, at most DELTA_BLOCK, of the `count` + 1 values. Pads the last
 * miniblock with the smallest difference. */
static void put_delta_block(sj_byte_buffer *out, const int64_t *values, size_t count)
{
    uint64_t deltas[DELTA_BLOCK] = {0};
    unsigned widths[DELTA_MINIBLOCKS] = {0};
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < count; ++i) {
        /* Unsigned, because the format requires that a difference wraps around. */
        deltas[i] = (uint64_t)values[i + 1] - (uint64_t)values[i];
        least = (int64_t)deltas[i] < least ? (int64_t)deltas[i] : least;
    }
    for (size_t i = 0; i < count; ++i) {
        deltas[i] -= (uint64_t)least;
        const unsigned width = bit_width(deltas[i]);
        widths[i / DELTA_MINI] = width > widths[i / DELTA_MINI] ? width : widths[i / DELTA_MINI];
    }
    sj_byte_buffer_put_zigzag(out, least);
    for (size_t i = 0; i < DELTA_MINIBLOCKS; ++i) {
        sj_byte_buffer_put_number(out, widths[i], 1);
    }
    for (size_t i = 0; i * DELTA_MINI < count; ++i) {
        put_packed(out, deltas + i * DELTA_MINI, DELTA_MINI, widths[i]);
    }
}

static void put_deltas(sj_byte_buffer *out, const int64_t *values, size_t count)
{
    sj_byte_buffer_put_varint(out, DELTA_BLOCK);
    sj_byte_buffer_put_varint(out, DELTA_MINIBLOCKS);
    sj_byte_buffer_put_varint(out, count);
    sj_byte_buffer_put_zigzag(out, count != 0 ? values[0] : 0);
    for (size_t at = 0; at + 1 < count; at += DELTA_BLOCK) {
        const size_t left = count - 1 - at;
        put_delta_block(out, values + at, left < DELTA_BLOCK ? left : DELTA_BLOCK);
    }
}

/* Appends the numbers of dictionary entries as one bit-packed run. */
static void put_entries(sj_byte_buffer *out, const int64_t *values, size_t count, size_t entries)
{
    enum { GROUP = 8 };
    const unsigned width = entries > 1 ? bit_width(entries - 1) : 1;
    const size_t groups = (count + GROUP - 1) / GROUP;
    sj_byte_buffer_put_number(out, width, 1);
    sj_byte_buffer_put_varint(out, groups << 1 | 1);
    for (size_t group = 0; group < groups; ++group) {
        uint64_t eight[GROUP] = {0};
        for (size_t i = 0; i < GROUP && group * GROUP + i < count; ++i) {
            eight[i] = (uint64_t)values[group * GROUP + i];
        }
        put_packed(out, eight, GROUP, width);
    }
}

/* Appends the definition levels, a bit per row that says whether the row has a value: their size in
 * bytes, then one run. */
static void put_levels(sj_byte_buffer *out, const sj_call_reader *calls, size_t column)
{
    const size_t at = out->size;
    sj_byte_buffer_put_number(out, 0, 4);
    if (calls->null_count[column] == 0) {
        sj_byte_buffer_put_varint(out, calls->rows << 1);
        sj_byte_buffer_put_number(out, 1, 1);
    } else {
        const size_t groups = (calls->rows + 7) / 8;
        sj_byte_buffer_put_varint(out, groups << 1 | 1);
        sj_byte_buffer_put(out, calls->valid[column], groups);
    }
    sj_byte_buffer_set(out, at, out->size - at - 4, 4);
}

/* Compresses pages->page. Appends a page header and the compressed page to pages->out. */
static sj_status add_page(sj_parquet_pages *pages, int type, size_t values, int encoding,
                          sj_parquet_chunk *chunk)
{
    const size_t plain_bytes = pages->page.size;
    const size_t bound = ZSTD_compressBound(plain_bytes);
    /* Compress into the space after the plain page: the header precedes the compressed page, and
     * contains its size. */
    uint8_t *space = sj_byte_buffer_add(&pages->page, bound);
    if (space == NULL) {
        return SJ_ENOMEM;
    }
    const size_t stored_bytes = ZSTD_compressCCtx(pages->compressor, space, bound,
                                                  pages->page.bytes, plain_bytes, ZSTD_LEVEL);
    if (ZSTD_isError(stored_bytes)) {
        return SJ_ENOMEM;
    }
    sj_byte_buffer_clear(&pages->head);
    sj_thrift_writer thrift = {.out = &pages->head};
    sj_thrift_number(&thrift, 1, SJ_THRIFT_I32, type);
    sj_thrift_number(&thrift, 2, SJ_THRIFT_I32, (int64_t)plain_bytes);
    sj_thrift_number(&thrift, 3, SJ_THRIFT_I32, (int64_t)stored_bytes);
    sj_thrift_begin(&thrift, type == PAGE_DATA ? 5 : 7);
    sj_thrift_number(&thrift, 1, SJ_THRIFT_I32, (int64_t)values);
    sj_thrift_number(&thrift, 2, SJ_THRIFT_I32, encoding);
    if (type == PAGE_DATA) {
        sj_thrift_number(&thrift, 3, SJ_THRIFT_I32, SJ_PARQUET_RLE);
        sj_thrift_number(&thrift, 4, SJ_THRIFT_I32, SJ_PARQUET_RLE);
    }
    sj_thrift_end(&thrift);
    sj_byte_buffer_put_number(&pages->head, 0, 1);
    sj_byte_buffer_put(&pages->out, pages->head.bytes, pages->head.size);
    sj_byte_buffer_put(&pages->out, space, stored_bytes);
    chunk->plain_bytes += pages->head.size + plain_bytes;
    return pages->head.failed || pages->out.failed ? SJ_ENOMEM : SJ_OK;
}

/* Writes the dictionary page: each name that `present` uses, once. Replaces the name indexes in
 * `present` with numbers of dictionary entries. */
static sj_status add_dictionary(sj_parquet_pages *pages, sj_call_reader *calls, size_t column,
                                size_t count, size_t *entries, sj_parquet_chunk *chunk)
{
    *entries = 0;
    for (size_t i = 0; i < count; ++i) {
        const uint32_t place = (uint32_t)pages->present[i];
        if (pages->entries[place] == 0) {
            pages->used[(*entries)++] = place;
            pages->entries[place] = (uint32_t)*entries;
        }
        pages->present[i] = pages->entries[place] - 1;
    }
    sj_byte_buffer_clear(&pages->page);
    for (size_t i = 0; i < *entries; ++i) {
        const char *text = sj_call_columns[column].kind == SJ_CALL_FUNCTION
                               ? sj_call_reader_name(calls, pages->used[i])
                               : sj_call_endings[pages->used[i]];
        const size_t size = sj_utf8_clean(text, NULL);
        sj_byte_buffer_put_number(&pages->page, size, 4);
        uint8_t *place = sj_byte_buffer_add(&pages->page, size);
        if (place == NULL) {
            return SJ_ENOMEM;
        }
        (void)sj_utf8_clean(text, (char *)place);
        pages->entries[pages->used[i]] = 0;
    }
    SJ_TRY(add_page(pages, PAGE_DICTIONARY, *entries, SJ_PARQUET_PLAIN, chunk));
    chunk->dictionary_bytes = pages->out.size;
    return SJ_OK;
}

/* Copies the values that are not NULL to `present`, and writes their range to the chunk. Returns
 * the number of these values. */
static size_t copy_present(sj_parquet_pages *pages, const sj_call_reader *calls, size_t column,
                           sj_parquet_chunk *chunk)
{
    size_t count = 0;
    int64_t least = INT64_MAX;
    int64_t greatest = INT64_MIN;
    for (size_t row = 0; row < calls->rows; ++row) {
        if ((calls->valid[column][row / 8] >> row % 8 & 1) != 0) {
            const int64_t value = calls->values[column][row];
            least = value < least ? value : least;
            greatest = value > greatest ? value : greatest;
            pages->present[count++] = value;
        }
    }
    chunk->has_range = count != 0;
    chunk->least = least;
    chunk->greatest = greatest;
    return count;
}

sj_status sj_parquet_pages_make(sj_parquet_pages *pages, sj_call_reader *calls, size_t column,
                                sj_parquet_chunk *chunk)
{
    const sj_call_column *kind = &sj_call_columns[column];
    const bool is_text = kind->kind == SJ_CALL_FUNCTION || kind->kind == SJ_CALL_ENDING;
    *chunk = (sj_parquet_chunk){0};
    sj_byte_buffer_clear(&pages->out);
    const size_t count = copy_present(pages, calls, column, chunk);
    size_t entries = 0;
    if (is_text) {
        chunk->has_range = false;
        SJ_TRY(add_dictionary(pages, calls, column, count, &entries, chunk));
    }
    sj_byte_buffer_clear(&pages->page);
    if (kind->nullable) {
        put_levels(&pages->page, calls, column);
    }
    if (is_text) {
        put_entries(&pages->page, pages->present, count, entries);
    } else {
        put_deltas(&pages->page, pages->present, count);
    }
    if (pages->page.failed) {
        return SJ_ENOMEM;
    }
    SJ_TRY(add_page(pages, PAGE_DATA, calls->rows,
                    is_text ? SJ_PARQUET_DICTIONARY : SJ_PARQUET_DELTA, chunk));
    chunk->stored_bytes = pages->out.size;
    return SJ_OK;
}
