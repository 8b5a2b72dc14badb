/* Internal header of the block codec; not included outside this folder. proto/README.md describes
 * the bytes. */
#ifndef SJ_PROTO_BLOCK_BLOCK_INTERNAL_H
#define SJ_PROTO_BLOCK_BLOCK_INTERNAL_H

#include "proto/block/block.h"

#include <zstd.h>

enum {
    SJ_BLOCK_DIRECTORY_ENTRY_BYTES = 12,
    SJ_BLOCK_CRC_BYTES = 4,
    SJ_BLOCK_MAX_COLUMNS = 64,
    SJ_BLOCK_KNOWN_COLUMNS = 15, /* 1 + the highest column id of this version */
    SJ_VARINT_MAX_BYTES = 10,
    SJ_VARINT32_MAX_BYTES = 5,
    SJ_BLOCK_MAX_TAIL_ENDED = 255 /* upper bound of 1 + `ended` of a tail call */
};

/* A reusable buffer. Growing it discards its content. */
typedef struct sj_block_buffer {
    uint8_t *data;
    size_t capacity;
} sj_block_buffer;

/* Makes the buffer hold at least `size` bytes. Growing discards the content. Errors: SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_block_buffer_reserve(sj_block_buffer *buffer, size_t size);
void sj_block_buffer_deinit(sj_block_buffer *buffer);

/* Writes the 128 bytes of a header. */
void sj_block_header_write(sj_writer *writer, const sj_block_header *header);

/* Checks that the header's counts agree with each other and with the limits. Errors: SJ_ECORRUPT,
 * SJ_ELIMIT. */
SJ_MUST_CHECK sj_status sj_block_header_check(const sj_block_header *header);

/* Returns the maximum uncompressed size of a column of a block with this header; 0 for unknown
 * columns. The encoder passes its own `gap_count`, `value_count` and `text_bytes` (of all values).
 * The decoder passes the limits. */
size_t sj_block_column_limit(unsigned column, const sj_block_header *header, size_t gap_count,
                             size_t value_count, size_t text_bytes);

/* --- structure: see block_structure.c --------------------------------------------------------- */

enum {
    SJ_HISTORY_LONG = 6, /* symbols in the long context */
    SJ_HISTORY_SHORT = 3,
    /* zeros before the first symbol, so that lookups need no bounds check */
    SJ_HISTORY_PADDING = 8,
    SJ_CONTEXT_LONG_BITS = 15,
    SJ_CONTEXT_SHORT_BITS = 13
};

/* The position in the block where each context (the latest symbols) was seen last. A slot holds
 * `epoch` + position. A value below the current epoch is from an earlier block, so the tables need
 * not be cleared for each block. */
typedef struct sj_contexts {
    uint32_t epoch;
    uint32_t long_slots[1 << SJ_CONTEXT_LONG_BITS];
    uint32_t short_slots[1 << SJ_CONTEXT_SHORT_BITS];
} sj_contexts;

/* Makes all slots unused. */
void sj_contexts_begin(sj_contexts *contexts);

/* Writes the runs and misses of `count` symbols. SJ_HISTORY_PADDING zeros must precede `symbols`,
 * and 4 readable symbols must follow them. */
void sj_structure_encode(sj_contexts *contexts, const uint16_t *symbols, size_t count,
                         sj_writer *runs, sj_writer *misses);
void sj_structure_encode_wide(sj_contexts *contexts, const uint32_t *symbols, size_t count,
                              sj_writer *runs, sj_writer *misses);

/* Decodes the output of sj_structure_encode. SJ_HISTORY_PADDING zeros must precede `symbols`, and
 * there must be space for SJ_COPY_SLACK symbols after the last one. Errors: SJ_ECORRUPT. */
enum { SJ_COPY_SLACK = 32 };
SJ_MUST_CHECK sj_status sj_structure_decode(sj_contexts *contexts, sj_slice runs, sj_slice misses,
                                            size_t function_count, uint16_t *symbols, size_t count);
SJ_MUST_CHECK sj_status sj_structure_decode_wide(sj_contexts *contexts, sj_slice runs,
                                                 sj_slice misses, size_t function_count,
                                                 uint32_t *symbols, size_t count);

/* --- times: see block_times.c and block_times_encode.c ------------------------------------------
 */

enum { SJ_LONG_GAP = 255 };

typedef struct sj_times_plan {
    uint32_t step;
    uint32_t packing; /* bits per gap: 2, 4 or 8 */
} sj_times_plan;

/* Chooses the step and the packing. The step is `step` if every gap is a multiple of it, else 1.
 * Writes the time gaps between events to `gaps`, in steps; SJ_LONG_GAP stands for SJ_LONG_GAP steps
 * or more. Errors: SJ_EINVAL if time goes backwards. */
SJ_MUST_CHECK sj_status sj_times_measure(const sj_event *events, size_t count, uint32_t step,
                                         uint8_t *gaps, sj_times_plan *plan);
void sj_times_encode(const sj_event *events, const uint8_t *gaps, size_t count,
                     const sj_times_plan *plan, sj_writer *packed, sj_writer *escapes);

/* Writes `count` absolute times. `ticks` needs space for 8 more. Errors: SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_times_decode(sj_slice packed, sj_slice escapes,
                                        const sj_block_header *header, uint64_t *ticks);

/* --- key-frame, endings, gaps ------------------------------------------------------------------
 */

void sj_keyframe_encode(const sj_stack_frame *frames, size_t count, uint64_t first_ticks,
                        uint32_t step, sj_writer *writer);
/* Reads `count` frames. Does not set `jumped_ticks`. Errors: SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_keyframe_decode(sj_slice bytes, size_t count, uint64_t first_ticks,
                                           uint32_t step, sj_stack_frame *frames);

void sj_endings_encode(const sj_block_ending *endings, size_t count, sj_writer *writer);
/* sj_endings_decode and sj_gaps_decode check the stored count against the length of the bytes
 * before they allocate. Both write into `buffer`. Errors: SJ_ECORRUPT, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_endings_decode(sj_slice bytes, uint32_t event_count,
                                          sj_block_buffer *buffer, size_t *count);

void sj_gaps_encode(const sj_gap *gaps, size_t count, uint64_t first_ticks, sj_writer *writer);
/* See sj_endings_decode. Also checks the sums of lost calls and events of the header. Errors:
 * SJ_ECORRUPT, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_gaps_decode(sj_slice bytes, const sj_block_header *header,
                                       sj_block_buffer *buffer, size_t *count);

/* Adds up what the gaps lost. Errors: SJ_EINVAL if a sum exceeds 64 bits. */
SJ_MUST_CHECK sj_status sj_gaps_sum(const sj_gap *gaps, size_t count, uint64_t *lost_calls,
                                    uint64_t *lost_events);

/* Values: see block_values.c, and block_value_rows.c for older blocks. */

/* Allocates the working memory of encoding and decoding. The caller frees it with free(). Errors:
 * SJ_ENOMEM. */
typedef struct sj_value_columns sj_value_columns;
SJ_MUST_CHECK sj_status sj_value_columns_new(sj_value_columns **columns);

size_t sj_block_values_bound(size_t count, size_t text_bytes);
size_t sj_block_value_rows_bound(size_t count);
size_t sj_values_text_bytes(const sj_block_value *values, size_t count);

/* Checks the values to be encoded; the header must be complete. Errors: SJ_EINVAL. */
SJ_MUST_CHECK sj_status sj_values_check(const sj_block_input *input);
bool sj_values_is_sound(const sj_block_value *value, const sj_block_header *header,
                        size_t rule_count);
void sj_values_encode(const sj_block_input *input, sj_value_columns *columns, sj_writer *writer);

/* Both write the values into `buffer`, followed by their texts, and the rules into `rules`. Errors:
 * SJ_ECORRUPT, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_values_decode(sj_slice bytes, const sj_block_header *header,
                                         sj_value_columns *columns, sj_block_buffer *buffer,
                                         sj_block_rules *rules, size_t *count);
SJ_MUST_CHECK sj_status sj_value_rows_decode(sj_slice bytes, const sj_block_header *header,
                                             sj_block_buffer *buffer, sj_block_rules *rules,
                                             size_t *count);

/* Reads the number of items, each of at least `item_bytes` bytes. Sets `bad` if the number exceeds
 * `limit` or the bytes that are left. */
size_t sj_values_read_count(sj_reader *reader, size_t item_bytes, size_t limit);
void sj_values_read_rules(sj_reader *reader, sj_block_rules *rules);

/* --- tail calls: see block_tail_calls.c ---------------------------------------------------------
 *
 * The table `tails` has one byte per symbol: the `tail_call` of its ENTERs. */

/* True if no frame jumped before it began. */
bool sj_jumped_frames_check(const sj_stack_frame *frames, size_t count);
void sj_jumped_frames_encode(const sj_stack_frame *frames, size_t count, sj_writer *writer);

/* Adds the jump times to decoded frames. Errors: SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_jumped_frames_decode(sj_slice bytes, sj_stack_frame *frames,
                                                size_t count);

void sj_tail_symbols_encode(const uint8_t *tails, size_t function_count, sj_writer *writer);

/* Fills `buffer` with the table and points `*tails` at it. Leaves both unchanged if the column is
 * empty. Errors: SJ_ECORRUPT, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_tail_symbols_decode(sj_slice bytes, size_t function_count,
                                               sj_block_buffer *buffer, const uint8_t **tails);

/* True if every tail call is preceded by the LEAVEs that it names. The block must have symbols. */
bool sj_tail_calls_check(const sj_block *block);

/* Lists the tail calls of a checked block in `buffer`. Errors: SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_tail_calls_list(sj_block *block, sj_block_buffer *buffer);

/* --- untimed calls: see block_untimed.c ---------------------------------------------------------
 *
 * The table `untimed` has one byte per symbol: 1 if its ENTERs are untimed. */

void sj_untimed_encode(const uint8_t *untimed, size_t function_count, const sj_stack_frame *frames,
                       size_t frame_count, sj_writer *writer);

/* Sets SJ_CALL_UNTIMED in decoded frames, fills `buffer` and points `*untimed` at it. Changes
 * nothing if the column is empty. Errors: SJ_ECORRUPT, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_untimed_decode(sj_slice bytes, size_t function_count,
                                          sj_stack_frame *frames, size_t frame_count,
                                          sj_block_buffer *buffer, const uint8_t **untimed);

/* Returns the number of frames in the key-frame column, for both kinds of blocks. */
static inline uint32_t sj_block_inline_frames(const sj_block_header *header)
{
    return header->open_depth - header->stack_frames;
}

#endif
