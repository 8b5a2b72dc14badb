#include "agent/drain/block_sink.h"

sj_status sj_block_sink_write(const sj_drain_shared *shared, uint64_t thread,
                              const sj_block_header *header, sj_slice bytes)
{
    return shared->profiler != NULL ? sj_profiler_block(shared->profiler, thread, bytes)
           : shared->flight != NULL ? sj_flight_recorder_block(shared->flight, header, bytes)
                                    : sj_frame_writer_block(shared->options.writer, header, bytes);
}
