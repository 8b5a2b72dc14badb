/* Adds blocks to the timeline of a stream.
 *
 * Design notes. Steps are counted in events, not in time. So the data bounds their number, however
 * long a thread idles, and blocks can be added in any order. A block is cut where steps begin, and
 * adds to their rows in its own transaction. The coarser levels are recomputed from those rows when
 * aggregates are written, so computing them twice does no harm. The viewer draws the level with
 * about one row per pixel. Below the finest level it draws the calls themselves. */
#include "collector-server/store/store_internal.h"

enum { COARSEST_LEVEL = 22, BITS_A_LEVEL = 4 };

sj_status sj_store_note_timeline(sj_store *store, const sj_session_state *state, int64_t stream_id,
                                 const sj_block *block, const sj_block_summary *summary,
                                 sj_error *error)
{
    const sj_tick_clock *clock = &state->clock;
    const size_t count = block->header.event_count;
    const uint64_t first = block->header.first_event;
    int64_t depth = block->header.open_depth;
    size_t from = 0;
    for (size_t i = 0; i < summary->sample_count && i < block->step_count; ++i) {
        const uint64_t number = (first + from) >> SJ_SAMPLE_BITS;
        const uint64_t beyond = ((number + 1) << SJ_SAMPLE_BITS) - first;
        const size_t to = beyond < count ? (size_t)beyond : count;
        const sj_block_depths *depths = &block->steps[i];
        const uint64_t end = to < count ? block->ticks[to] : block->header.last_ticks;
        const uint64_t calls = (uint64_t)((int64_t)(to - from) + depths->end - depth) / 2;
        const int64_t path = state->session_id << 32 | summary->samples[i];
        SJ_TRY(SJ_RUN(
            &store->sql, timeline_add, error, .stream_id = stream_id, .level = SJ_SAMPLE_BITS,
            .number = number, .start_ns = sj_ticks_at_ns(clock, block->ticks[from]),
            .end_ns = sj_ticks_at_ns(clock, end), .calls = calls, .max_depth = depths->entered,
            .path_id = summary->samples[i] != 0 ? &path : NULL));
        depth = depths->end;
        from = to;
    }
    return SJ_OK;
}

sj_status sj_store_note_timeline_paths(sj_store *store, const sj_session_state *state,
                                       int64_t stream_id, const sj_block *block,
                                       const sj_block_summary *summary, sj_error *error)
{
    const uint64_t first = block->header.first_event;
    uint64_t number = first >> SJ_SAMPLE_BITS;
    for (size_t i = 0; i < summary->sample_count; ++i, ++number) {
        const uint64_t begin = number << SJ_SAMPLE_BITS;
        const int64_t path = state->session_id << 32 | summary->samples[i];
        const uint64_t at = block->ticks[begin > first ? begin - first : 0];
        SJ_TRY(SJ_RUN(&store->sql, timeline_path, error, .stream_id = stream_id,
                      .level = SJ_SAMPLE_BITS, .number = number,
                      .start_ns = sj_ticks_at_ns(&state->clock, at),
                      .path_id = summary->samples[i] != 0 ? &path : NULL));
    }
    return SJ_OK;
}

sj_status sj_session_flush_timeline(sj_statements *sql, sj_stream_state *stream, sj_error *error)
{
    if (stream->steps_end == 0) {
        return SJ_OK;
    }
    uint64_t first = stream->first_step;
    uint64_t last = stream->steps_end - 1;
    for (int level = SJ_SAMPLE_BITS + BITS_A_LEVEL; level <= COARSEST_LEVEL;
         level += BITS_A_LEVEL) {
        first >>= BITS_A_LEVEL;
        last >>= BITS_A_LEVEL;
        SJ_TRY(SJ_RUN(sql, timeline_sum, error, .stream_id = stream->stream_id, .level = level,
                      .first_number = first << BITS_A_LEVEL,
                      .last_number = (last << BITS_A_LEVEL) + (1 << BITS_A_LEVEL) - 1));
    }
    stream->first_step = stream->steps_end = 0;
    return SJ_OK;
}
