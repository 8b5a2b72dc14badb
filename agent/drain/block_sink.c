#include "agent/drain/block_sink.h"

sj_status sj_block_sink_write(const sj_drain_shared *shared, const sj_block_header *header,
                              sj_slice bytes)
{
    return shared->profiler != NULL ? sj_profiler_block(shared->profiler, bytes)
           : shared->flight != NULL ? sj_flight_recorder_block(shared->flight, header, bytes)
                                    : sj_frame_writer_block(shared->options.writer, header, bytes);
}

uint64_t sj_block_sink_next(const sj_drain_shared *shared, const sj_block_header *header)
{
    if (shared->profiler != NULL) {
        return SJ_OFFER_SUMS | (atomic_load(&shared->journal->summed_events) + header->event_count);
    }
    return shared->flight != NULL
               ? SJ_OFFER_FLIGHT | (sj_flight_recorder_last_number(shared->flight) + 1)
               : sj_frame_writer_next_block(shared->options.writer);
}
