#include "agent/drain/unsent_records.h"

#include "agent/drain/open_calls.h"
#include "agent/drain/refused_events.h"
#include "agent/host/clock.h"

void sj_unsent_report(sj_drain_shared *shared, sj_gap_reason reason, uint64_t thread,
                      uint64_t calls, uint64_t events, uint64_t start_ticks)
{
    const uint64_t all = events > calls ? events : calls;
    if (all != 0 && sj_frame_writer_gap(shared->options.writer, reason, thread, 0, calls, all,
                                        start_ticks, sj_clock_ticks()) != SJ_OK) {
        shared->ended.unreported_calls += calls;
        shared->ended.unreported_events += all;
    }
}

static uint64_t positive_difference(uint64_t all, uint64_t known)
{
    return all > known ? all - known : 0;
}

static void report_slot(sj_drain_shared *shared, const sj_arena_view *view, uint32_t number)
{
    const sj_thread_slot *slot = sj_arena_view_slot(view, number);
    const sj_slot_cursor *cursor = &slot->cursor;
    uint64_t calls = 0;
    uint64_t events = 0;
    uint64_t discarded_calls = 0;
    uint64_t discarded_events = 0;
    /* Pairs with the release of the thread that filled the slot. */
    if (atomic_load_explicit(&slot->state, memory_order_acquire) != SJ_THREAD_LIVE) {
        return;
    }
    sj_arena_view_unread(view, number, &calls, &events);
    sj_arena_view_discarded(view, number, &discarded_calls, &discarded_events);
    calls += slot->unsent_calls +
             positive_difference(atomic_load(&slot->dropped_calls) + discarded_calls,
                                 cursor->noted_calls);
    events +=
        cursor->unsent + positive_difference(atomic_load(&slot->dropped_events) + discarded_events,
                                             cursor->noted_events);
    sj_unsent_report(shared, SJ_GAP_TORN, cursor->thread, calls, events, slot->start_ticks);
}

static void report_arena(sj_drain_shared *shared, sj_arena_view *view)
{
    sj_refused_events refused;
    const uint32_t begun = sj_arena_view_slots_begun(view);
    for (uint32_t slot = 0; slot < begun; slot++) {
        report_slot(shared, view, slot);
    }
    if (sj_refused_events_report(view, shared->options.writer, &refused) != SJ_OK) {
        shared->ended.unreported_calls += refused.calls;
        shared->ended.unreported_events += refused.events;
    }
}

/* Reports the records in the arena at `path`. If there is no memory to map the arena, counts the
 * process in processes_without_arena instead; if the arena cannot be read, in
 * processes_unreadable. */
static void report_arena_at(sj_drain_shared *shared, const char *path)
{
    sj_arena_view view;
    const sj_status status = sj_arena_view_open(path, &view);
    bool is_readable = status == SJ_OK || status == SJ_ENOMEM || status == SJ_EAGAIN;
    shared->ended.processes_without_arena += status == SJ_ENOMEM;
    if (status == SJ_OK) {
        is_readable = sj_clock_is_of(sj_arena_view_header(&view));
        if (is_readable) {
            report_arena(shared, &view);
        }
        sj_arena_view_close(&view);
    }
    shared->ended.processes_unreadable += !is_readable;
}

/* Reports the calls of a process that were open at attach and that the drain has not sent. */
static void report_open_calls(sj_drain_shared *shared, pid_t pid)
{
    const size_t calls = sj_open_calls_count(shared, pid);
    sj_unsent_report(shared, SJ_GAP_TORN, 0, calls, calls, shared->preopened_ticks);
}

void sj_unsent_process_report(sj_process_drain *process)
{
    sj_drain_shared *shared = process->shared;
    report_open_calls(shared, process->tracked.pid);
    if (process->is_open && !process->is_read) {
        report_arena(shared, &process->view);
    } else if (!process->is_read) {
        report_arena_at(shared, process->arena_path);
    }
}

void sj_unsent_added_report(sj_drain_shared *shared, const sj_added_process *added)
{
    char path[PATH_MAX];
    sj_process_drain_name_arena(shared, added->arena_name, path);
    report_open_calls(shared, added->tracked.pid);
    report_arena_at(shared, path);
}
