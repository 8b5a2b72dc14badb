#include "agent/drain/unsent_records.h"

#include "agent/drain/open_calls.h"
#include "agent/drain/read_progress.h"
#include "agent/drain/refused_events.h"
#include "agent/host/clock.h"

/* Reports a loss as sj_unsent_report does. Returns false if the gap cannot be sent. */
static bool send_gap(sj_drain_shared *shared, sj_gap_reason reason, uint64_t thread, uint64_t calls,
                     uint64_t events, uint64_t start_ticks)
{
    const uint64_t all = events > calls ? events : calls;
    if (all != 0 && sj_frame_writer_gap(shared->options.writer, reason, thread, 0, calls, all,
                                        start_ticks, sj_clock_ticks()) != SJ_OK) {
        shared->ended.unreported_calls += calls;
        shared->ended.unreported_events += all;
        return false;
    }
    return true;
}

void sj_unsent_report(sj_drain_shared *shared, sj_gap_reason reason, uint64_t thread,
                      uint64_t calls, uint64_t events, uint64_t start_ticks)
{
    (void)send_gap(shared, reason, thread, calls, events, start_ticks);
}

static uint64_t positive_difference(uint64_t all, uint64_t known)
{
    return all > known ? all - known : 0;
}

/* Moves the cursor of a slot past all of its records and drops, as if they had been read. */
static void pass_all(const sj_arena_view *view, uint32_t number, sj_read_progress *progress)
{
    const sj_unread_records unread = sj_arena_view_unread(view, number);
    sj_thread_slot *slot = progress->slot;
    uint64_t calls = 0;
    uint64_t events = 0;
    sj_arena_view_discarded(view, number, &calls, &events);
    calls = positive_difference(atomic_load(&slot->dropped_calls) + calls, progress->noted_calls);
    events =
        positive_difference(atomic_load(&slot->dropped_events) + events, progress->noted_events);
    progress->sequence = unread.sequence;
    progress->position = unread.position;
    progress->noted_calls += calls;
    progress->noted_events += events;
    progress->unsent_calls = slot->unsent_calls + unread.calls + calls;
    progress->unsent = slot->cursor.unsent + unread.events + events;
    sj_read_progress_save(progress);
}

/* Reports everything in a slot as lost. If this process is killed meanwhile, the next one reports
 * the rest, and nothing twice. */
static void report_slot(sj_drain_shared *shared, const sj_arena_view *view, uint32_t number)
{
    sj_thread_slot *slot = sj_arena_view_slot(view, number);
    sj_read_progress progress;
    /* Pairs with the release of the thread that filled the slot. */
    if (atomic_load_explicit(&slot->state, memory_order_acquire) != SJ_THREAD_LIVE) {
        return;
    }
    sj_read_progress_init(&progress, slot);
    sj_read_progress_resume(&progress);
    pass_all(view, number, &progress);
    sj_read_progress_offer(&progress,
                           SJ_OFFER_GAP | sj_frame_writer_next_gap(shared->options.writer),
                           UINT64_MAX, UINT64_MAX);
    if (send_gap(shared, SJ_GAP_TORN, slot->cursor.thread, progress.unsent_calls, progress.unsent,
                 slot->start_ticks)) {
        sj_read_progress_sent(&progress, UINT64_MAX, UINT64_MAX);
    } else {
        sj_read_progress_refused(&progress);
    }
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
