#include "agent/drain/refused_events.h"

#include "agent/host/clock.h"

/* Writes the numbers of the next report. `next_gap` says whether calls_after and events_after are
 * valid, so it is cleared first and written last. */
static void offer(sj_refused_reports *reports, uint64_t calls, uint64_t events, uint64_t gap)
{
    atomic_signal_fence(memory_order_seq_cst);
    reports->next_gap = 0;
    atomic_signal_fence(memory_order_seq_cst);
    reports->calls_after = calls;
    reports->events_after = events;
    atomic_signal_fence(memory_order_seq_cst);
    reports->next_gap = gap;
    atomic_signal_fence(memory_order_seq_cst);
}

static void settle(sj_refused_reports *reports)
{
    reports->calls = reports->calls_after;
    reports->events = reports->events_after;
    reports->has_gap = 1;
    atomic_signal_fence(memory_order_seq_cst);
    reports->next_gap = 0;
    atomic_signal_fence(memory_order_seq_cst);
}

static uint64_t positive_difference(uint64_t all, uint64_t known)
{
    return all > known ? all - known : 0;
}

sj_status sj_refused_events_report(const sj_arena_view *view, sj_frame_writer *writer,
                                   sj_refused_events *refused)
{
    sj_arena_header *header = sj_arena_view_header(view);
    sj_refused_reports *reports = &header->refused_reports;
    const uint64_t calls = atomic_load(&header->calls_refused);
    const uint64_t events = atomic_load(&header->events_refused);
    *refused = (sj_refused_events){.calls = positive_difference(calls, reports->calls),
                                   .events = positive_difference(events, reports->events)};
    if (refused->events == 0 &&
        (atomic_load(&header->threads_refused) == 0 || reports->has_gap != 0)) {
        return SJ_OK;
    }
    offer(reports, calls, events, sj_frame_writer_next_gap(writer));
    SJ_TRY(sj_frame_writer_gap(writer, SJ_GAP_NO_THREAD_SLOT, 0, 0, refused->calls, refused->events,
                               header->attach_ticks, sj_clock_ticks()));
    settle(reports);
    return SJ_OK;
}
