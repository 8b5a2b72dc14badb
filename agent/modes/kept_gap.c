#include "agent/modes/kept_gap.h"

static sj_status report(sj_frame_writer *writer, uint64_t thread, uint32_t stream,
                        const sj_gap *gap)
{
    return sj_frame_writer_gap(writer, (sj_gap_reason)gap->reason, thread, stream, gap->calls,
                               gap->events, gap->start_ticks, gap->end_ticks);
}

sj_status sj_kept_gap_report(sj_kept_gap *kept, sj_frame_writer *writer)
{
    if (kept->is_set) {
        SJ_TRY(report(writer, kept->thread, kept->stream, &kept->gap));
        kept->is_set = false;
    }
    return SJ_OK;
}

static void keep(sj_kept_gap *kept, uint64_t thread, uint32_t stream, const sj_gap *gap)
{
    if (!kept->is_set) {
        *kept = (sj_kept_gap){.is_set = true, .gap = *gap, .thread = thread, .stream = stream};
        return;
    }
    sj_gap *sum = &kept->gap;
    /* A gap that lost events determines the reason of the sum. */
    sum->reason = gap->events != 0 ? gap->reason : sum->reason;
    sum->calls += gap->calls;
    sum->events += gap->events;
    sum->start_ticks = gap->start_ticks < sum->start_ticks ? gap->start_ticks : sum->start_ticks;
    sum->end_ticks = gap->end_ticks > sum->end_ticks ? gap->end_ticks : sum->end_ticks;
    if (kept->thread != thread || kept->stream != stream) {
        kept->thread = kept->stream = 0;
    }
}

void sj_kept_gap_report_block(sj_kept_gap *kept, sj_frame_writer *writer, uint64_t thread,
                              const sj_block *block)
{
    const uint32_t stream = block->header.stream;
    for (size_t i = 0; i < block->gap_count; i++) {
        const sj_gap *gap = &block->gaps[i];
        if (gap->reason != SJ_GAP_BEFORE_RECORDING &&
            (sj_kept_gap_report(kept, writer) != SJ_OK ||
             report(writer, thread, stream, gap) != SJ_OK)) {
            keep(kept, thread, stream, gap);
        }
    }
}
