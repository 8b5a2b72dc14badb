/* Encodes a block: symbols from events, columns, compression, directory, checksum. */
#include "proto/base/crc32c.h"
#include "proto/block/block_internal.h"

#include <stdlib.h>

enum {
    MAX_NARROW_FUNCTIONS = 65534,
    FUNCTION_SLOT_BITS = 19, /* twice SJ_BLOCK_MAX_EVENTS: at most half of the slots are used */
    FUNCTION_SLOTS = 1 << FUNCTION_SLOT_BITS,
    MIN_COMPRESSED_BYTES = 32, /* an empty zstd frame alone takes 9 to 13 */
    /* A table of this size stays in the L1 cache. Larger tables do not compress better. */
    ZSTD_HASH_BITS = 10,
    /* Shorter matches pay only in the column of misses. */
    ZSTD_MIN_MATCH = 7,
    ZSTD_MIN_MATCH_MISSES = 4
};

/* A slot is free if its `stamp` is below the block's first stamp. Else stamp - first_stamp is the
 * symbol. */
typedef struct entry_slot {
    uint64_t entry; /* see entry_of */
    uint32_t stamp;
} entry_slot;

struct sj_block_encoder {
    ZSTD_CCtx *zstd;
    sj_block_buffer scratch;
    sj_value_columns *values; /* NULL until the first block with values */
    sj_contexts contexts;
    uint32_t first_stamp;
    uint32_t function_count;
    bool has_tail_calls;
    bool bad_tail_call;
    uint32_t functions[SJ_BLOCK_MAX_EVENTS];
    uint8_t tails[1 + SJ_BLOCK_MAX_EVENTS];   /* by symbol */
    uint8_t untimed[1 + SJ_BLOCK_MAX_EVENTS]; /* by symbol */
    entry_slot slots[FUNCTION_SLOTS];
    uint8_t gaps[SJ_BLOCK_MAX_EVENTS];
    /* used for both symbol widths */
    uint32_t symbols[SJ_HISTORY_PADDING + SJ_BLOCK_MAX_EVENTS + SJ_COPY_SLACK];
    sj_writer columns[SJ_BLOCK_KNOWN_COLUMNS];
};

sj_status sj_block_encoder_new(sj_block_encoder **encoder)
{
    *encoder = NULL;
    sj_block_encoder *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    made->first_stamp = 1;
    made->zstd = ZSTD_createCCtx();
    if (made->zstd == NULL ||
        ZSTD_isError(ZSTD_CCtx_setParameter(made->zstd, ZSTD_c_strategy, ZSTD_fast)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(made->zstd, ZSTD_c_hashLog, ZSTD_HASH_BITS))) {
        sj_block_encoder_free(made);
        return SJ_ENOMEM;
    }
    *encoder = made;
    return SJ_OK;
}

void sj_block_encoder_free(sj_block_encoder *encoder)
{
    if (encoder == NULL) {
        return;
    }
    ZSTD_freeCCtx(encoder->zstd);
    sj_block_buffer_deinit(&encoder->scratch);
    free(encoder->values);
    free(encoder);
}

/* Returns the maximum size of a column of the block. */
static size_t column_bound(unsigned column, const sj_block_input *input)
{
    return column != SJ_COLUMN_VALUE_ROWS /* only older versions wrote it */
               ? sj_block_column_limit(column, &input->header, input->gap_count, input->value_count,
                                       sj_values_text_bytes(input->values, input->value_count))
               : 0;
}

size_t sj_block_bound(const sj_block_input *input)
{
    size_t bytes = SJ_BLOCK_HEADER_BYTES + SJ_BLOCK_CRC_BYTES;
    for (unsigned column = 0; column < SJ_BLOCK_KNOWN_COLUMNS; column++) {
        bytes += SJ_BLOCK_DIRECTORY_ENTRY_BYTES + column_bound(column, input);
    }
    return bytes;
}

/* --- dictionary and symbols --------------------------------------------------------------------
 */

/* Returns the key of a dictionary entry: a function and how it was entered. */
static inline uint64_t entry_of(const sj_event *event)
{
    return (uint64_t)event->tail_call << 32 | event->function;
}

/* Returns the slot at which the search for an entry begins. Function ids are dense, so the home
 * slot of nearly every entry is free. */
static inline uint32_t home_slot(uint64_t entry)
{
    return ((uint32_t)entry + (uint32_t)(entry >> 32) * (FUNCTION_SLOTS / 8 - 1)) &
           (FUNCTION_SLOTS - 1);
}

/* Returns the slot after the home slot from which the search for an entry continues, slot by slot.
 * */
static uint32_t next_slot(uint64_t entry)
{
    return (uint32_t)((entry * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - FUNCTION_SLOT_BITS));
}

/* Empties the dictionary and adds LEAVE. LEAVE gets a slot like any entry, so that the lookup needs
 * no branch on the kind of event. */
static void begin_dictionary(sj_block_encoder *encoder)
{
    encoder->first_stamp += encoder->function_count + 1;
    encoder->function_count = 0;
    encoder->has_tail_calls = false;
    encoder->bad_tail_call = false;
    if (encoder->first_stamp > UINT32_MAX - SJ_BLOCK_MAX_EVENTS - 1) {
        memset(encoder->slots, 0, sizeof(encoder->slots));
        encoder->first_stamp = 1;
    }
    encoder->slots[home_slot(SJ_EVENT_LEAVE)] =
        (entry_slot){.entry = SJ_EVENT_LEAVE, .stamp = encoder->first_stamp};
}

static void add_entry(sj_block_encoder *encoder, entry_slot *slot, uint64_t entry)
{
    const uint32_t function = (uint32_t)entry;
    const bool is_untimed = (entry >> 32 & SJ_EVENT_UNTIMED) != 0;
    const uint32_t tail_call = (uint32_t)(entry >> 32) & ~(uint32_t)SJ_EVENT_UNTIMED;
    encoder->functions[encoder->function_count++] = function;
    encoder->tails[encoder->function_count] = (uint8_t)tail_call;
    encoder->untimed[encoder->function_count] = is_untimed;
    encoder->has_tail_calls |= tail_call != 0;
    encoder->bad_tail_call |= function == SJ_EVENT_LEAVE || tail_call > SJ_BLOCK_MAX_TAIL_ENDED;
    *slot = (entry_slot){.entry = entry, .stamp = encoder->first_stamp + encoder->function_count};
}

/* Adds `entry` to the slot if it is free. Returns true if the slot holds `entry`. */
static bool claim_slot(sj_block_encoder *encoder, entry_slot *slot, uint64_t entry)
{
    if (slot->stamp < encoder->first_stamp) {
        add_entry(encoder, slot, entry);
    }
    return slot->entry == entry;
}

/* The slow path of symbol_of: the entry is not in its home slot, or is new. */
static uint32_t find_symbol(sj_block_encoder *encoder, uint64_t entry)
{
    entry_slot *slot = &encoder->slots[home_slot(entry)];
    for (uint32_t at = next_slot(entry); !claim_slot(encoder, slot, entry);
         at = (at + 1) & (FUNCTION_SLOTS - 1)) {
        slot = &encoder->slots[at];
    }
    return slot->stamp - encoder->first_stamp;
}

/* Returns 0 for LEAVE, and 1 + the dictionary index for an ENTER. */
static inline uint32_t symbol_of(sj_block_encoder *encoder, uint32_t first_stamp, uint64_t entry)
{
    const entry_slot *slot = &encoder->slots[home_slot(entry)];
    if (slot->entry == entry && slot->stamp >= first_stamp) {
        return slot->stamp - first_stamp;
    }
    return find_symbol(encoder, entry);
}

static void fill_symbols(sj_block_encoder *encoder, const sj_event *events, size_t count,
                         uint16_t *symbols)
{
    const uint32_t first_stamp = encoder->first_stamp;
    for (size_t i = 0; i < count; i++) {
        symbols[i] = (uint16_t)symbol_of(encoder, first_stamp, entry_of(&events[i]));
    }
}

static void fill_wide_symbols(sj_block_encoder *encoder, const sj_event *events, size_t count,
                              uint32_t *symbols)
{
    for (size_t i = 0; i < count; i++) {
        symbols[i] = symbol_of(encoder, encoder->first_stamp, entry_of(&events[i]));
    }
}

/* Fills in call count and final depth. Errors: SJ_EINVAL for a LEAVE without an open call. */
static sj_status count_calls(const uint16_t *narrow, const uint32_t *wide, sj_block_header *header)
{
    const sj_block described = {.header = *header, .symbols16 = narrow, .symbols32 = wide};
    const sj_block_depths depths = sj_block_measure_depths(&described);
    const int64_t deeper = depths.end - header->open_depth;
    header->call_count = (uint32_t)((deeper + header->event_count) / 2);
    header->end_depth = (uint32_t)depths.end;
    return depths.lowest >= 0 && depths.end <= UINT32_MAX ? SJ_OK : SJ_EINVAL;
}

/* Encodes which symbols are tail calls. Errors: SJ_EINVAL if the LEAVEs that a tail call names are
 * missing. */
static sj_status encode_tail_symbols(sj_block_encoder *encoder, const sj_block_header *header,
                                     const uint16_t *narrow, const uint32_t *wide)
{
    if (!encoder->has_tail_calls && !encoder->bad_tail_call) {
        return SJ_OK;
    }
    const sj_block described = {.header = *header,
                                .symbols16 = narrow,
                                .symbols32 = wide,
                                .function_count = encoder->function_count,
                                .tails = encoder->tails};
    sj_tail_symbols_encode(encoder->tails, encoder->function_count,
                           &encoder->columns[SJ_COLUMN_TAIL_SYMBOLS]);
    return !encoder->bad_tail_call && sj_tail_calls_check(&described) ? SJ_OK : SJ_EINVAL;
}

static sj_status encode_structure(sj_block_encoder *encoder, const sj_block_input *input,
                                  sj_block_header *header)
{
    sj_writer *runs = &encoder->columns[SJ_COLUMN_RUNS];
    sj_writer *misses = &encoder->columns[SJ_COLUMN_MISSES];
    const size_t count = header->event_count;
    uint16_t *narrow = (uint16_t *)encoder->symbols + SJ_HISTORY_PADDING;
    memset(encoder->symbols, 0, SJ_HISTORY_PADDING * sizeof(uint32_t));
    begin_dictionary(encoder);
    fill_symbols(encoder, input->events, count, narrow);
    if (encoder->function_count <= MAX_NARROW_FUNCTIONS) {
        SJ_TRY(count_calls(narrow, NULL, header));
        memset(narrow + count, 0, sizeof(uint64_t));
        sj_structure_encode(&encoder->contexts, narrow, count, runs, misses);
        SJ_TRY(encode_tail_symbols(encoder, header, narrow, NULL));
    } else {
        uint32_t *wide = encoder->symbols + SJ_HISTORY_PADDING;
        memset(encoder->symbols, 0, SJ_HISTORY_PADDING * sizeof(uint32_t));
        fill_wide_symbols(encoder, input->events, count, wide);
        SJ_TRY(count_calls(NULL, wide, header));
        memset(wide + count, 0, sizeof(uint64_t));
        sj_structure_encode_wide(&encoder->contexts, wide, count, runs, misses);
        SJ_TRY(encode_tail_symbols(encoder, header, NULL, wide));
    }
    sj_writer *functions = &encoder->columns[SJ_COLUMN_FUNCTIONS];
    if (encoder->function_count != 0) {
        sj_write_varint(functions, encoder->function_count);
    }
    for (uint32_t i = 0; i < encoder->function_count; i++) {
        sj_write_varint(functions, encoder->functions[i]);
    }
    return SJ_OK;
}

static sj_status encode_times(sj_block_encoder *encoder, const sj_block_input *input,
                              sj_block_header *header)
{
    const size_t count = header->event_count;
    if (count == 0) {
        return SJ_OK;
    }
    sj_times_plan plan;
    SJ_TRY(sj_times_measure(input->events, count, header->clock_step, encoder->gaps, &plan));
    header->clock_step = plan.step;
    header->first_ticks = input->events[0].ticks;
    header->last_ticks = input->events[count - 1].ticks;
    sj_times_encode(input->events, encoder->gaps, count, &plan, &encoder->columns[SJ_COLUMN_TIMES],
                    &encoder->columns[SJ_COLUMN_LONG_TIMES]);
    return SJ_OK;
}

/* --- the smaller columns -----------------------------------------------------------------------
 */

static sj_status check_endings(const sj_block_input *input)
{
    for (size_t i = 0; i < input->ending_count; i++) {
        const sj_block_ending *ending = &input->endings[i];
        if (ending->event >= input->header.event_count ||
            (i != 0 && ending->event <= input->endings[i - 1].event) ||
            ending->ending == SJ_ENDING_RETURNED || ending->ending > SJ_ENDING_TRUNCATED ||
            input->events[ending->event].function != SJ_EVENT_LEAVE) {
            return SJ_EINVAL;
        }
    }
    return SJ_OK;
}

static sj_status check_gaps(const sj_block_input *input)
{
    for (size_t i = 0; i < input->gap_count; i++) {
        const sj_gap *gap = &input->gaps[i];
        if (gap->before_event > input->header.event_count || gap->reason == 0 ||
            gap->end_ticks < gap->start_ticks ||
            (i != 0 && gap->before_event < input->gaps[i - 1].before_event)) {
            return SJ_EINVAL;
        }
    }
    return SJ_OK;
}

static void encode_small_columns(sj_block_encoder *encoder, const sj_block_input *input,
                                 const sj_block_header *header)
{
    const uint32_t frames = sj_block_inline_frames(header);
    if (frames != 0) {
        sj_keyframe_encode(input->frames, frames, header->first_ticks, header->clock_step,
                           &encoder->columns[SJ_COLUMN_KEYFRAME]);
        sj_jumped_frames_encode(input->frames, frames, &encoder->columns[SJ_COLUMN_JUMPED_FRAMES]);
    }
    sj_untimed_encode(encoder->untimed,
                      header->kind == SJ_BLOCK_CALLS ? encoder->function_count : 0, input->frames,
                      frames, &encoder->columns[SJ_COLUMN_UNTIMED]);
    if (input->ending_count != 0) {
        sj_endings_encode(input->endings, input->ending_count,
                          &encoder->columns[SJ_COLUMN_ENDINGS]);
    }
    if (input->gap_count != 0) {
        sj_gaps_encode(input->gaps, input->gap_count, header->first_ticks,
                       &encoder->columns[SJ_COLUMN_GAPS]);
    }
    if (input->value_count != 0) {
        sj_values_encode(input, encoder->values, &encoder->columns[SJ_COLUMN_VALUES]);
    }
}

/* --- assembly ----------------------------------------------------------------------------------
 */

/* Checks the input that determines the column sizes. sj_block_header_check later checks the header.
 * */
static sj_status check_input(const sj_block_input *input)
{
    const sj_block_header *header = &input->header;
    const bool stack = header->kind == SJ_BLOCK_DEEP_FRAMES;
    if (header->event_count > SJ_BLOCK_MAX_EVENTS || input->gap_count > SJ_BLOCK_MAX_GAPS ||
        header->clock_step == 0 || header->stack_frames > header->open_depth ||
        sj_block_inline_frames(header) >
            (stack ? SJ_BLOCK_MAX_STACK_FRAMES : SJ_BLOCK_MAX_INLINE_FRAMES)) {
        return SJ_EINVAL;
    }
    if (stack && (header->event_count != 0 || input->ending_count != 0 || input->gap_count != 0 ||
                  input->value_count != 0)) {
        return SJ_EINVAL;
    }
    if (!sj_jumped_frames_check(input->frames, sj_block_inline_frames(header))) {
        return SJ_EINVAL;
    }
    SJ_TRY(check_gaps(input));
    return check_endings(input);
}

/* Gives each column a part of the scratch buffer, as large as the column can get. */
static sj_status begin_columns(sj_block_encoder *encoder, const sj_block_input *input)
{
    SJ_TRY(sj_block_buffer_reserve(&encoder->scratch, sj_block_bound(input)));
    uint8_t *at = encoder->scratch.data;
    for (unsigned column = 0; column < SJ_BLOCK_KNOWN_COLUMNS; column++) {
        const size_t limit = column_bound(column, input);
        encoder->columns[column] = sj_writer_of(at, limit);
        at += limit;
    }
    return SJ_OK;
}

/* Compresses a column into `output`. Returns its compressed size, or 0 if it is not smaller. */
static size_t compress(ZSTD_CCtx *zstd, unsigned column, const sj_writer *raw, uint8_t *output,
                       size_t capacity)
{
    const size_t raw_bytes = sj_writer_used(raw);
    const int match = column == SJ_COLUMN_MISSES ? ZSTD_MIN_MATCH_MISSES : ZSTD_MIN_MATCH;
    if (raw_bytes < MIN_COMPRESSED_BYTES ||
        ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_minMatch, match))) {
        return 0;
    }
    const size_t packed = ZSTD_compress2(zstd, output, capacity < raw_bytes ? capacity : raw_bytes,
                                         raw->start, raw_bytes);
    return !ZSTD_isError(packed) && packed < raw_bytes ? packed : 0;
}

/* Appends a column, compressed if that is smaller, and its directory entry. */
static void write_column(sj_block_encoder *encoder, unsigned column, sj_writer *directory,
                         sj_writer *body)
{
    const sj_writer *raw = &encoder->columns[column];
    const size_t raw_bytes = sj_writer_used(raw);
    const size_t packed =
        body->bad ? 0
                  : compress(encoder->zstd, column, raw, body->at, (size_t)(body->end - body->at));
    if (packed != 0) {
        body->at += packed;
    } else {
        sj_write_bytes(body, raw->start, raw_bytes);
    }
    sj_write_u16(directory, (uint16_t)column);
    sj_write_u8(directory, packed != 0 ? SJ_CODING_ZSTD : SJ_CODING_RAW);
    sj_write_u8(directory, 0);
    sj_write_u32(directory, (uint32_t)raw_bytes);
    sj_write_u32(directory, (uint32_t)(packed != 0 ? packed : raw_bytes));
}

static sj_status write_block(sj_block_encoder *encoder, sj_block_header *header, uint8_t *output,
                             size_t capacity, size_t *size_bytes)
{
    header->column_count = 0;
    for (unsigned column = 0; column < SJ_BLOCK_KNOWN_COLUMNS; column++) {
        header->column_count += sj_writer_used(&encoder->columns[column]) != 0;
    }
    const size_t directory_bytes = (size_t)header->column_count * SJ_BLOCK_DIRECTORY_ENTRY_BYTES;
    if (capacity < SJ_BLOCK_HEADER_BYTES + directory_bytes) {
        return SJ_EINVAL;
    }
    sj_writer directory = sj_writer_of(output, SJ_BLOCK_HEADER_BYTES + directory_bytes);
    sj_writer body =
        sj_writer_of(directory.end, capacity - SJ_BLOCK_HEADER_BYTES - directory_bytes);
    sj_block_header_write(&directory, header);
    for (unsigned column = 0; column < SJ_BLOCK_KNOWN_COLUMNS; column++) {
        if (sj_writer_used(&encoder->columns[column]) != 0) {
            write_column(encoder, column, &directory, &body);
        }
    }
    sj_write_u32(&body, sj_crc32c(0, output, (size_t)(body.at - output)));
    if (body.bad || directory.bad) {
        return SJ_EINVAL;
    }
    *size_bytes = (size_t)(body.at - output);
    return *size_bytes <= SJ_BLOCK_MAX_BYTES ? SJ_OK : SJ_ELIMIT;
}

/* Returns the lowest version whose readers know all endings of the block. */
static uint16_t version_for(const sj_block_input *input)
{
    for (size_t i = 0; i < input->ending_count; i++) {
        if (input->endings[i].ending == SJ_ENDING_OPEN) {
            return SJ_BLOCK_VERSION;
        }
    }
    return SJ_BLOCK_CLOSED_VERSION;
}

sj_status sj_block_encode(sj_block_encoder *encoder, const sj_block_input *input, uint8_t *output,
                          size_t capacity, size_t *size_bytes)
{
    sj_block_header header = input->header;
    header.version = version_for(input);
    header.call_count = 0;
    header.end_depth = header.open_depth;
    SJ_TRY(check_input(input));
    SJ_TRY(sj_gaps_sum(input->gaps, input->gap_count, &header.lost_calls, &header.lost_events));
    SJ_TRY(begin_columns(encoder, input));
    if (header.kind == SJ_BLOCK_CALLS) {
        SJ_TRY(encode_structure(encoder, input, &header));
        SJ_TRY(encode_times(encoder, input, &header));
    }
    sj_block_input counted = *input;
    counted.header = header;
    SJ_TRY(sj_values_check(&counted));
    if (counted.value_count != 0 && encoder->values == NULL) {
        SJ_TRY(sj_value_columns_new(&encoder->values));
    }
    encode_small_columns(encoder, &counted, &header);
    header.column_count = 0;
    if (sj_block_header_check(&header) != SJ_OK) {
        return SJ_EINVAL;
    }
    return write_block(encoder, &header, output, capacity, size_bytes);
}
