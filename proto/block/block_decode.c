/* Decodes blocks. Their bytes may come from an attacker, so the decoder checks each length against
 * the limits of the header before it allocates memory. */
#include "proto/base/crc32c.h"
#include "proto/block/block_internal.h"

#include <stdlib.h>

enum { MAX_NARROW_FUNCTIONS = 65534, TICKS_SLACK = 8 };

struct sj_block_decoder {
    ZSTD_DCtx *zstd;
    sj_block_buffer raw[SJ_BLOCK_KNOWN_COLUMNS]; /* decompressed columns */
    sj_block_buffer frames;
    sj_block_buffer functions;
    sj_block_buffer symbols;
    sj_block_buffer ticks;
    sj_block_buffer endings;
    sj_block_buffer gaps;
    sj_block_buffer values;
    sj_value_columns *value_columns; /* NULL until the first block with SJ_COLUMN_VALUES */
    sj_block_buffer tails;
    sj_block_buffer tail_calls;
    sj_block_buffer untimed;
    sj_block_rules rules;
    sj_contexts contexts;
    sj_block_depths steps[SJ_BLOCK_MAX_STEPS];
};

sj_status sj_block_decoder_new(sj_block_decoder **decoder)
{
    *decoder = NULL;
    sj_block_decoder *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    made->zstd = ZSTD_createDCtx();
    if (made->zstd == NULL) {
        sj_block_decoder_free(made);
        return SJ_ENOMEM;
    }
    *decoder = made;
    return SJ_OK;
}

void sj_block_decoder_free(sj_block_decoder *decoder)
{
    if (decoder == NULL) {
        return;
    }
    ZSTD_freeDCtx(decoder->zstd);
    for (unsigned column = 0; column < SJ_BLOCK_KNOWN_COLUMNS; column++) {
        sj_block_buffer_deinit(&decoder->raw[column]);
    }
    sj_block_buffer_deinit(&decoder->frames);
    sj_block_buffer_deinit(&decoder->functions);
    sj_block_buffer_deinit(&decoder->symbols);
    sj_block_buffer_deinit(&decoder->ticks);
    sj_block_buffer_deinit(&decoder->endings);
    sj_block_buffer_deinit(&decoder->gaps);
    sj_block_buffer_deinit(&decoder->values);
    free(decoder->value_columns);
    sj_block_buffer_deinit(&decoder->tails);
    sj_block_buffer_deinit(&decoder->tail_calls);
    sj_block_buffer_deinit(&decoder->untimed);
    free(decoder);
}

/* --- columns -----------------------------------------------------------------------------------
 */

typedef struct stored_column {
    sj_slice bytes; /* possibly compressed */
    uint32_t raw_bytes;
    uint8_t coding;
    bool present;
} stored_column;

/* Reads the column directory. Fills `columns` for known columns and skips unknown ones. */
static sj_status read_directory(sj_slice bytes, const sj_block_header *header,
                                stored_column columns[SJ_BLOCK_KNOWN_COLUMNS])
{
    sj_reader directory = sj_reader_of(bytes.data, bytes.size - SJ_BLOCK_CRC_BYTES);
    sj_read_bytes(&directory, SJ_BLOCK_HEADER_BYTES);
    sj_reader body = directory;
    sj_read_bytes(&body, (size_t)header->column_count * SJ_BLOCK_DIRECTORY_ENTRY_BYTES);
    for (uint32_t i = 0; i < header->column_count; i++) {
        const uint16_t id = sj_read_u16(&directory);
        stored_column column = {.present = true};
        column.coding = sj_read_u8(&directory);
        const uint8_t zero = sj_read_u8(&directory);
        column.raw_bytes = sj_read_u32(&directory);
        column.bytes.size = sj_read_u32(&directory);
        column.bytes.data = sj_read_bytes(&body, column.bytes.size);
        if (body.bad || zero != 0 || column.bytes.size == 0 || column.raw_bytes == 0) {
            return SJ_ECORRUPT;
        }
        if (id >= SJ_BLOCK_KNOWN_COLUMNS || id == SJ_COLUMN_RETIRED) {
            continue;
        }
        if (columns[id].present ||
            column.raw_bytes > sj_block_column_limit(id, header, SJ_BLOCK_MAX_GAPS,
                                                     SJ_BLOCK_MAX_VALUES,
                                                     SJ_BLOCK_MAX_TEXT_BYTES)) {
            return SJ_ECORRUPT;
        }
        columns[id] = column;
    }
    return !body.bad && sj_reader_left(&body) == 0 ? SJ_OK : SJ_ECORRUPT;
}

/* Sets `*raw` to the uncompressed bytes of a column, or to an empty slice if the column is absent.
 * `*raw` borrows from the stored bytes or from the decoder. */
static sj_status open_column(sj_block_decoder *decoder, const stored_column *columns, unsigned id,
                             sj_slice *raw)
{
    const stored_column *column = &columns[id];
    *raw = (sj_slice){0};
    if (!column->present) {
        return SJ_OK;
    }
    if (column->coding == SJ_CODING_RAW) {
        *raw = column->bytes;
        return raw->size == column->raw_bytes ? SJ_OK : SJ_ECORRUPT;
    }
    if (column->coding != SJ_CODING_ZSTD) {
        return SJ_EVERSION;
    }
    sj_block_buffer *buffer = &decoder->raw[id];
    SJ_TRY(sj_block_buffer_reserve(buffer, column->raw_bytes));
    const size_t size = ZSTD_decompressDCtx(decoder->zstd, buffer->data, column->raw_bytes,
                                            column->bytes.data, column->bytes.size);
    *raw = (sj_slice){.data = buffer->data, .size = column->raw_bytes};
    return size == column->raw_bytes ? SJ_OK : SJ_ECORRUPT;
}

static sj_status decode_values(sj_block_decoder *decoder, const stored_column *columns,
                               sj_block *block)
{
    sj_slice raw;
    decoder->rules.count = 0;
    block->rules = &decoder->rules;
    block->value_count = 0;
    SJ_TRY(open_column(decoder, columns, SJ_COLUMN_VALUES, &raw));
    if (raw.size != 0) {
        if (decoder->value_columns == NULL) {
            SJ_TRY(sj_value_columns_new(&decoder->value_columns));
        }
        SJ_TRY(sj_values_decode(raw, &block->header, decoder->value_columns, &decoder->values,
                                &decoder->rules, &block->value_count));
    } else {
        SJ_TRY(open_column(decoder, columns, SJ_COLUMN_VALUE_ROWS, &raw));
        SJ_TRY(raw.size != 0 ? sj_value_rows_decode(raw, &block->header, &decoder->values,
                                                    &decoder->rules, &block->value_count)
                             : SJ_OK);
    }
    block->values = (void *)decoder->values.data;
    return SJ_OK;
}

static sj_status decode_functions(sj_block_decoder *decoder, sj_slice raw, sj_block *block)
{
    if (raw.size == 0) {
        return SJ_OK;
    }
    sj_reader reader = sj_reader_of(raw.data, raw.size);
    const uint64_t count = sj_read_varint(&reader);
    if (count == 0 || count > block->header.call_count || count > sj_reader_left(&reader)) {
        return SJ_ECORRUPT;
    }
    SJ_TRY(sj_block_buffer_reserve(&decoder->functions, count * sizeof(uint32_t)));
    uint32_t *functions = (void *)decoder->functions.data;
    for (size_t i = 0; i < count; i++) {
        const uint64_t function = sj_read_varint(&reader);
        if (function == SJ_EVENT_LEAVE || function > UINT32_MAX) {
            return SJ_ECORRUPT;
        }
        functions[i] = (uint32_t)function;
    }
    block->functions = functions;
    block->function_count = count;
    return !reader.bad && sj_reader_left(&reader) == 0 ? SJ_OK : SJ_ECORRUPT;
}

static inline uint32_t block_symbol(const sj_block *block, size_t event)
{
    return block->symbols16 != NULL ? block->symbols16[event] : block->symbols32[event];
}

/* Measures the depths of the block. Returns SJ_ECORRUPT if a LEAVE has no open call, or if the
 * final depth differs from the header. */
static sj_status check_balance(sj_block_decoder *decoder, sj_block *block)
{
    block->depths = sj_block_measure_steps(block, decoder->steps, &block->step_count);
    block->steps = decoder->steps;
    return block->depths.lowest >= 0 && block->depths.end == block->header.end_depth ? SJ_OK
                                                                                     : SJ_ECORRUPT;
}

static sj_status decode_narrow_symbols(sj_block_decoder *decoder, sj_slice runs, sj_slice misses,
                                       sj_block *block)
{
    const size_t count = block->header.event_count;
    const size_t slots = SJ_HISTORY_PADDING + count + SJ_COPY_SLACK;
    SJ_TRY(sj_block_buffer_reserve(&decoder->symbols, slots * sizeof(uint16_t)));
    uint16_t *symbols = (void *)decoder->symbols.data;
    memset(symbols, 0, SJ_HISTORY_PADDING * sizeof(*symbols));
    symbols += SJ_HISTORY_PADDING;
    block->symbols16 = symbols;
    return sj_structure_decode(&decoder->contexts, runs, misses, block->function_count, symbols,
                               count);
}

static sj_status decode_wide_symbols(sj_block_decoder *decoder, sj_slice runs, sj_slice misses,
                                     sj_block *block)
{
    const size_t count = block->header.event_count;
    const size_t slots = SJ_HISTORY_PADDING + count + SJ_COPY_SLACK;
    SJ_TRY(sj_block_buffer_reserve(&decoder->symbols, slots * sizeof(uint32_t)));
    uint32_t *symbols = (void *)decoder->symbols.data;
    memset(symbols, 0, SJ_HISTORY_PADDING * sizeof(*symbols));
    symbols += SJ_HISTORY_PADDING;
    block->symbols32 = symbols;
    return sj_structure_decode_wide(&decoder->contexts, runs, misses, block->function_count,
                                    symbols, count);
}

static sj_status decode_structure(sj_block_decoder *decoder, const stored_column *columns,
                                  sj_block *block)
{
    sj_slice runs;
    sj_slice misses;
    SJ_TRY(open_column(decoder, columns, SJ_COLUMN_RUNS, &runs));
    SJ_TRY(open_column(decoder, columns, SJ_COLUMN_MISSES, &misses));
    SJ_TRY(block->function_count <= MAX_NARROW_FUNCTIONS
               ? decode_narrow_symbols(decoder, runs, misses, block)
               : decode_wide_symbols(decoder, runs, misses, block));
    SJ_TRY(check_balance(decoder, block));
    for (size_t i = 0; i < block->ending_count; i++) {
        if (block_symbol(block, block->endings[i].event) != SJ_EVENT_LEAVE) {
            return SJ_ECORRUPT;
        }
    }
    return sj_tail_calls_check(block) ? SJ_OK : SJ_ECORRUPT;
}

static sj_status decode_times(sj_block_decoder *decoder, const stored_column *columns,
                              sj_block *block)
{
    sj_slice packed;
    sj_slice escapes;
    SJ_TRY(open_column(decoder, columns, SJ_COLUMN_TIMES, &packed));
    SJ_TRY(open_column(decoder, columns, SJ_COLUMN_LONG_TIMES, &escapes));
    const size_t bytes = (block->header.event_count + (size_t)TICKS_SLACK) * sizeof(uint64_t);
    SJ_TRY(sj_block_buffer_reserve(&decoder->ticks, bytes));
    uint64_t *ticks = (void *)decoder->ticks.data;
    block->ticks = ticks;
    return sj_times_decode(packed, escapes, &block->header, ticks);
}

static sj_status decode_small_columns(sj_block_decoder *decoder, const stored_column *columns,
                                      sj_block *block)
{
    const sj_block_header *header = &block->header;
    sj_slice raw;
    SJ_TRY(open_column(decoder, columns, SJ_COLUMN_KEYFRAME, &raw));
    block->frame_count = sj_block_inline_frames(header);
    SJ_TRY(sj_block_buffer_reserve(&decoder->frames, block->frame_count * sizeof(sj_stack_frame)));
    SJ_TRY(sj_keyframe_decode(raw, block->frame_count, header->first_ticks, header->clock_step,
                              (void *)decoder->frames.data));
    block->frames = (void *)decoder->frames.data;
    SJ_TRY(open_column(decoder, columns, SJ_COLUMN_ENDINGS, &raw));
    SJ_TRY(sj_endings_decode(raw, header->event_count, &decoder->endings, &block->ending_count));
    block->endings = (void *)decoder->endings.data;
    SJ_TRY(open_column(decoder, columns, SJ_COLUMN_GAPS, &raw));
    SJ_TRY(sj_gaps_decode(raw, header, &decoder->gaps, &block->gap_count));
    block->gaps = (void *)decoder->gaps.data;
    SJ_TRY(decode_values(decoder, columns, block));
    SJ_TRY(open_column(decoder, columns, SJ_COLUMN_JUMPED_FRAMES, &raw));
    SJ_TRY(sj_jumped_frames_decode(raw, (void *)decoder->frames.data, block->frame_count));
    SJ_TRY(open_column(decoder, columns, SJ_COLUMN_FUNCTIONS, &raw));
    SJ_TRY(decode_functions(decoder, raw, block));
    SJ_TRY(open_column(decoder, columns, SJ_COLUMN_TAIL_SYMBOLS, &raw));
    SJ_TRY(sj_tail_symbols_decode(raw, block->function_count, &decoder->tails, &block->tails));
    SJ_TRY(open_column(decoder, columns, SJ_COLUMN_UNTIMED, &raw));
    return sj_untimed_decode(raw, block->function_count, (void *)decoder->frames.data,
                             block->frame_count, &decoder->untimed, &block->untimed);
}

sj_status sj_block_decode(sj_block_decoder *decoder, sj_slice bytes, unsigned want, sj_block *block)
{
    memset(block, 0, sizeof(*block));
    SJ_TRY(sj_block_read_header(bytes, &block->header));
    if (bytes.size < SJ_BLOCK_HEADER_BYTES + SJ_BLOCK_CRC_BYTES) {
        return SJ_ECORRUPT;
    }
    const size_t body_bytes = bytes.size - SJ_BLOCK_CRC_BYTES;
    sj_reader trailer = sj_reader_of(bytes.data + body_bytes, SJ_BLOCK_CRC_BYTES);
    if (sj_read_u32(&trailer) != sj_crc32c(0, bytes.data, body_bytes)) {
        return SJ_ECORRUPT;
    }
    stored_column columns[SJ_BLOCK_KNOWN_COLUMNS] = {0};
    SJ_TRY(read_directory(bytes, &block->header, columns));
    const bool structured = block->header.kind == SJ_BLOCK_CALLS && (want & SJ_WANT_STRUCTURE) != 0;
    SJ_TRY(decode_small_columns(decoder, columns, block));
    if (structured) {
        SJ_TRY(decode_structure(decoder, columns, block));
        SJ_TRY((want & SJ_WANT_TAIL_CALLS) != 0 ? sj_tail_calls_list(block, &decoder->tail_calls)
                                                : SJ_OK);
    }
    if (block->header.kind != SJ_BLOCK_CALLS) {
        return SJ_OK;
    }
    if ((want & SJ_WANT_TIMES) != 0) {
        SJ_TRY(decode_times(decoder, columns, block));
    }
    block->is_checked = (want & SJ_WANT_ALL) == SJ_WANT_ALL;
    return SJ_OK;
}
