/* What the files of the block codec share; not for other rooms. README.md describes the bytes. */
#ifndef SJ_PROTO_BLOCK_BLOCK_INTERNAL_H
#define SJ_PROTO_BLOCK_BLOCK_INTERNAL_H

#include "proto/block/block.h"

#include <zstd.h>

enum {
    SJ_BLOCK_DIRECTORY_ENTRY_BYTES = 12,
    SJ_BLOCK_CRC_BYTES = 4,
    SJ_BLOCK_MAX_COLUMNS = 64,
    SJ_BLOCK_KNOWN_COLUMNS = 15, /* one more than the highest id this version knows */
    SJ_VARINT_MAX_BYTES = 10,
    SJ_VARINT32_MAX_BYTES = 5,
    SJ_BLOCK_MAX_TAIL_ENDED = 255 /* 1 + `ended` of a tail call, at most */
};

/* A growing byte buffer: contents are not kept when it grows. */
typedef struct sj_block_buffer {
    uint8_t *data;
    size_t capacity;
} sj_block_buffer;

/* sj_block_buffer_reserve makes room for `size` bytes, dropping what was there. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_block_buffer_reserve(sj_block_buffer *buffer, size_t size);
void sj_block_buffer_deinit(sj_block_buffer *buffer);

/* sj_block_header_write writes the 128 bytes of a header. */
void sj_block_header_write(sj_writer *writer, const sj_block_header *header);

/* sj_block_header_check: SJ_ECORRUPT when counts contradict each other, SJ_ELIMIT. */
SJ_MUST_CHECK sj_status sj_block_header_check(const sj_block_header *header);

/* sj_block_column_limit: the most bytes that a known column of such a block can have before
 * compression; `gap_count`, `value_count` and `text_bytes` (of the values) are the encoder's or the
 * most that there may be. 0 for unknown columns. */
size_t sj_block_column_limit(unsigned column, const sj_block_header *header, size_t gap_count,
                             size_t value_count, size_t text_bytes);

/* --- structure: see block_structure.c --------------------------------------------------------- */

enum {
    SJ_HISTORY_LONG = 6, /* symbols in the long context */
    SJ_HISTORY_SHORT = 3,
    SJ_HISTORY_PADDING = 8, /* zeros before the first symbol, so that look-ups need no check */
    SJ_CONTEXT_LONG_BITS = 15,
    SJ_CONTEXT_SHORT_BITS = 13
};

/* Where each context was seen last. A slot holds `epoch + position`; a value below the current
 * epoch is from an earlier block, so nothing has to be cleared between blocks. */
typedef struct sj_contexts {
    uint32_t epoch;
    uint32_t long_slots[1 << SJ_CONTEXT_LONG_BITS];
    uint32_t short_slots[1 << SJ_CONTEXT_SHORT_BITS];
} sj_contexts;

/* sj_contexts_begin forgets the earlier blocks. */
void sj_contexts_begin(sj_contexts *contexts);

/* sj_structure_encode writes the runs and misses of `count` symbols. `symbols` has
 * SJ_HISTORY_PADDING zeros before it and 4 readable symbols after its end. */
void sj_structure_encode(sj_contexts *contexts, const uint16_t *symbols, size_t count,
                         sj_writer *runs, sj_writer *misses);
void sj_structure_encode_wide(sj_contexts *contexts, const uint32_t *symbols, size_t count,
                              sj_writer *runs, sj_writer *misses);

/* sj_structure_decode is the reverse; `symbols` has SJ_HISTORY_PADDING zeros before it and room for
 * SJ_COPY_SLACK symbols after its end. SJ_ECORRUPT. */
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
    uint32_t packing; /* 2, 4 or 8 bits a gap */
} sj_times_plan;

/* sj_times_measure checks that times do not go backwards, chooses the step (`step` when every gap
 * is a multiple of it, else 1) and the packing. `gaps` gets the gaps in steps, SJ_LONG_GAP standing
 * for that much and more. SJ_EINVAL: time goes backwards. */
SJ_MUST_CHECK sj_status sj_times_measure(const sj_event *events, size_t count, uint32_t step,
                                         uint8_t *gaps, sj_times_plan *plan);
void sj_times_encode(const sj_event *events, const uint8_t *gaps, size_t count,
                     const sj_times_plan *plan, sj_writer *packed, sj_writer *escapes);

/* sj_times_decode writes `count` absolute times. `ticks` has room for 8 more. SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_times_decode(sj_slice packed, sj_slice escapes,
                                        const sj_block_header *header, uint64_t *ticks);

/* --- key-frame, endings, gaps ------------------------------------------------------------------
 */

void sj_keyframe_encode(const sj_stack_frame *frames, size_t count, uint64_t first_ticks,
                        uint32_t step, sj_writer *writer);
SJ_MUST_CHECK sj_status sj_keyframe_decode(sj_slice bytes, size_t count, uint64_t first_ticks,
                                           uint32_t step, sj_stack_frame *frames);

void sj_endings_encode(const sj_block_ending *endings, size_t count, sj_writer *writer);
/* sj_endings_decode and sj_gaps_decode allocate by a count that they have checked against the
 * length of their bytes. */
SJ_MUST_CHECK sj_status sj_endings_decode(sj_slice bytes, uint32_t event_count,
                                          sj_block_buffer *buffer, size_t *count);

void sj_gaps_encode(const sj_gap *gaps, size_t count, uint64_t first_ticks, sj_writer *writer);
SJ_MUST_CHECK sj_status sj_gaps_decode(sj_slice bytes, const sj_block_header *header,
                                       sj_block_buffer *buffer, size_t *count);

/* sj_gaps_sum adds up what the gaps lost. SJ_EINVAL when a sum exceeds 64 bits. */
SJ_MUST_CHECK sj_status sj_gaps_sum(const sj_gap *gaps, size_t count, uint64_t *lost_calls,
                                    uint64_t *lost_events);

/* Values: see block_values.c, and block_value_rows.c for older blocks. */

/* What encoding and decoding need of memory; freed by free(). sj_value_columns_new: SJ_ENOMEM. */
typedef struct sj_value_columns sj_value_columns;
SJ_MUST_CHECK sj_status sj_value_columns_new(sj_value_columns **columns);

size_t sj_block_values_bound(size_t count, size_t text_bytes);
size_t sj_block_value_rows_bound(size_t count);
size_t sj_values_text_bytes(const sj_block_value *values, size_t count);

/* sj_values_check looks at what is to be encoded, its header complete: SJ_EINVAL. */
SJ_MUST_CHECK sj_status sj_values_check(const sj_block_input *input);
bool sj_values_is_sound(const sj_block_value *value, const sj_block_header *header,
                        size_t rule_count);
void sj_values_encode(const sj_block_input *input, sj_value_columns *columns, sj_writer *writer);

/* Both put the values into `buffer`, their texts behind them, and the rules into `rules`.
 * SJ_ECORRUPT, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_values_decode(sj_slice bytes, const sj_block_header *header,
                                         sj_value_columns *columns, sj_block_buffer *buffer,
                                         sj_block_rules *rules, size_t *count);
SJ_MUST_CHECK sj_status sj_value_rows_decode(sj_slice bytes, const sj_block_header *header,
                                             sj_block_buffer *buffer, sj_block_rules *rules,
                                             size_t *count);

/* sj_values_read_count reads a count of items of which each takes at least `item_bytes`. */
size_t sj_values_read_count(sj_reader *reader, size_t item_bytes, size_t limit);
void sj_values_read_rules(sj_reader *reader, sj_block_rules *rules);

/* --- tail calls: see block_tail_calls.c ---------------------------------------------------------
 * A table `tails` has a byte for each symbol: the `tail_call` of the ENTERs that it stands for. */

/* sj_jumped_frames_check: no frame jumped before it began. */
bool sj_jumped_frames_check(const sj_stack_frame *frames, size_t count);
void sj_jumped_frames_encode(const sj_stack_frame *frames, size_t count, sj_writer *writer);

/* sj_jumped_frames_decode completes decoded frames. SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_jumped_frames_decode(sj_slice bytes, sj_stack_frame *frames,
                                                size_t count);

void sj_tail_symbols_encode(const uint8_t *tails, size_t function_count, sj_writer *writer);

/* sj_tail_symbols_decode fills `buffer` and sets `*tails` to it, unless there is nothing to decode.
 * SJ_ECORRUPT, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_tail_symbols_decode(sj_slice bytes, size_t function_count,
                                               sj_block_buffer *buffer, const uint8_t **tails);

/* sj_tail_calls_check: in front of each tail call of a block with symbols stand the LEAVEs that it
 * names. */
bool sj_tail_calls_check(const sj_block *block);

/* sj_tail_calls_list lists the tail calls of a checked block in `buffer`. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_tail_calls_list(sj_block *block, sj_block_buffer *buffer);

/* --- untimed calls: see block_untimed.c ---------------------------------------------------------
 * A table `untimed` has a byte for each symbol: 1, the ENTERs that it stands for are untimed. */

void sj_untimed_encode(const uint8_t *untimed, size_t function_count, const sj_stack_frame *frames,
                       size_t frame_count, sj_writer *writer);

/* sj_untimed_decode completes decoded frames, fills `buffer` and sets `*untimed` to it, unless
 * there is nothing to decode. SJ_ECORRUPT, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_untimed_decode(sj_slice bytes, size_t function_count,
                                          sj_stack_frame *frames, size_t frame_count,
                                          sj_block_buffer *buffer, const uint8_t **untimed);

/* sj_block_inline_frames: how many frames the key-frame column holds, in either kind. */
static inline uint32_t sj_block_inline_frames(const sj_block_header *header)
{
    return header->open_depth - header->stack_frames;
}

#endif
