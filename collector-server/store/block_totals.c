/* Adds one block to the aggregates of its stream and its session. */
#include "collector-server/store/session_state.h"

static uint32_t symbol_at(const sj_block *block, size_t event)
{
    return block->symbols16 != NULL ? block->symbols16[event] : block->symbols32[event];
}

/* Updates the first entry and the last exit of the stream, from which its run time is computed. */
static void note_times(sj_stream_state *stream, const sj_tick_clock *clock, const sj_block *block)
{
    const size_t count = block->header.event_count;
    size_t enter = 0;
    size_t leave = count;
    while (enter < count && symbol_at(block, enter) == SJ_EVENT_LEAVE) {
        enter++;
    }
    while (leave > 0 && symbol_at(block, leave - 1) != SJ_EVENT_LEAVE) {
        leave--;
    }
    if (enter < count) {
        const int64_t at = sj_ticks_at_ns(clock, block->ticks[enter]);
        stream->first_enter_ns =
            stream->entered && stream->first_enter_ns < at ? stream->first_enter_ns : at;
        stream->entered = true;
    }
    if (leave > 0) {
        const int64_t at = sj_ticks_at_ns(clock, block->ticks[leave - 1]);
        stream->last_leave_ns =
            stream->left && stream->last_leave_ns > at ? stream->last_leave_ns : at;
        stream->left = true;
    }
}

static void note_steps(sj_stream_state *stream, const sj_block_header *header)
{
    if (header->event_count == 0) {
        return;
    }
    const uint64_t first = header->first_event >> SJ_SAMPLE_BITS;
    const uint64_t end = ((header->first_event + header->event_count - 1) >> SJ_SAMPLE_BITS) + 1;
    stream->first_step =
        stream->steps_end != 0 && stream->first_step < first ? stream->first_step : first;
    stream->steps_end = end > stream->steps_end ? end : stream->steps_end;
}

void sj_session_count_block(sj_session_state *state, sj_stream_state *stream, const sj_block *block,
                            const sj_block_summary *summary, size_t bytes)
{
    const sj_block_header *header = &block->header;
    state->totals.blocks++;
    state->totals.bytes += bytes;
    state->dirty = true;
    if (header->kind != SJ_BLOCK_CALLS) {
        return;
    }
    state->totals.calls += header->call_count;
    state->totals.events += header->event_count;
    state->totals.lost_calls += header->lost_calls;
    state->totals.lost_events += header->lost_events;
    stream->calls += header->call_count;
    stream->max_depth =
        summary->max_depth > stream->max_depth ? summary->max_depth : stream->max_depth;
    stream->ended = stream->ended || (header->flags & SJ_BLOCK_LAST) != 0;
    stream->dirty = true;
    note_times(stream, &state->clock, block);
    note_steps(stream, header);
}
