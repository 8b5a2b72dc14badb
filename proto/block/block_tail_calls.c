/* Two columns about tail calls (proto/README.md): the calls of the key-frame that ended by a jump,
 * and the symbols that stand for ENTERs by a tail call. */
#include "proto/block/block_internal.h"

#include <string.h>

/* --- the key-frame ----------------------------------------------------------------------------
 */

bool sj_jumped_frames_check(const sj_stack_frame *frames, size_t count)
{
    bool sound = true;
    for (size_t i = 0; i < count; i++) {
        sound &= frames[i].jumped_ticks == 0 || frames[i].jumped_ticks >= frames[i].start_ticks;
    }
    return sound;
}

void sj_jumped_frames_encode(const sj_stack_frame *frames, size_t count, sj_writer *writer)
{
    size_t previous = 0;
    for (size_t i = 0; i < count; i++) {
        if (frames[i].jumped_ticks != 0) {
            sj_write_varint(writer, i - previous);
            sj_write_varint(writer, frames[i].jumped_ticks - frames[i].start_ticks);
            previous = i;
        }
    }
}

sj_status sj_jumped_frames_decode(sj_slice bytes, sj_stack_frame *frames, size_t count)
{
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    uint64_t place = 0;
    for (bool first = true; sj_reader_left(&reader) != 0; first = false) {
        const uint64_t distance = sj_read_varint(&reader);
        const uint64_t lasted = sj_read_varint(&reader);
        if (reader.bad || distance >= count - place || (distance == 0 && !first)) {
            return SJ_ECORRUPT;
        }
        place += distance;
        sj_stack_frame *frame = &frames[place];
        if (__builtin_add_overflow(frame->start_ticks, lasted, &frame->jumped_ticks) ||
            frame->jumped_ticks == 0) {
            return SJ_ECORRUPT;
        }
    }
    return SJ_OK;
}

/* --- the dictionary ---------------------------------------------------------------------------
 */

void sj_tail_symbols_encode(const uint8_t *tails, size_t function_count, sj_writer *writer)
{
    size_t previous = 0;
    for (size_t i = 1; i <= function_count; i++) {
        if (tails[i] != 0) {
            sj_write_varint(writer, i - previous);
            sj_write_varint(writer, tails[i]);
            previous = i;
        }
    }
}

sj_status sj_tail_symbols_decode(sj_slice bytes, size_t function_count, sj_block_buffer *buffer,
                                 const uint8_t **tails)
{
    if (bytes.size == 0) {
        return SJ_OK;
    }
    SJ_TRY(sj_block_buffer_reserve(buffer, function_count + 1));
    memset(buffer->data, 0, function_count + 1);
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    uint64_t symbol = 0;
    while (sj_reader_left(&reader) != 0) {
        const uint64_t distance = sj_read_varint(&reader);
        const uint64_t tail_call = sj_read_varint(&reader);
        if (reader.bad || distance == 0 || distance > function_count - symbol || tail_call == 0 ||
            tail_call > SJ_BLOCK_MAX_TAIL_ENDED) {
            return SJ_ECORRUPT;
        }
        symbol += distance;
        buffer->data[symbol] = (uint8_t)tail_call;
    }
    *tails = buffer->data;
    return SJ_OK;
}

/* --- the events -------------------------------------------------------------------------------
 */

static inline uint32_t symbol_at(const sj_block *block, bool wide, size_t event)
{
    return wide ? block->symbols32[event] : block->symbols16[event];
}

/* True if enough LEAVEs precede each tail call. */
static inline __attribute__((always_inline)) bool check_events(const sj_block *block, bool wide)
{
    uint32_t leaves = 0; /* right before the event */
    bool sound = true;
    for (size_t i = 0; i < block->header.event_count; i++) {
        const uint32_t symbol = symbol_at(block, wide, i);
        sound &= block->tails[symbol] <= 1 + leaves;
        leaves = symbol == SJ_EVENT_LEAVE ? leaves + 1 : 0;
    }
    return sound;
}

bool sj_tail_calls_check(const sj_block *block)
{
    uint8_t most = 0;
    for (size_t i = 1; i <= block->function_count && block->tails != NULL; i++) {
        most = block->tails[i] > most ? block->tails[i] : most;
    }
    if (most <= 1) {
        return true; /* a value of 1 names no LEAVEs, so there is nothing to check */
    }
    return block->symbols16 != NULL ? check_events(block, false) : check_events(block, true);
}

/* Lists the tail calls and returns their number, without a branch on the kind of event. `calls`
 * needs space for one element more than there are ENTERs. */
static inline __attribute__((always_inline)) size_t list_events(const sj_block *block, bool wide,
                                                                sj_block_tail_call *calls)
{
    size_t found = 0;
    for (size_t i = 0; i < block->header.event_count; i++) {
        const uint32_t tail_call = block->tails[symbol_at(block, wide, i)];
        calls[found] = (sj_block_tail_call){.event = (uint32_t)i, .ended = tail_call - 1};
        found += tail_call != 0;
    }
    return found;
}

sj_status sj_tail_calls_list(sj_block *block, sj_block_buffer *buffer)
{
    if (block->tails == NULL) {
        return SJ_OK;
    }
    const size_t capacity = block->header.call_count + (size_t)1;
    SJ_TRY(sj_block_buffer_reserve(buffer, capacity * sizeof(sj_block_tail_call)));
    sj_block_tail_call *calls = (void *)buffer->data;
    block->tail_call_count = block->symbols16 != NULL ? list_events(block, false, calls)
                                                      : list_events(block, true, calls);
    block->tail_calls = calls;
    return SJ_OK;
}
