#include "agent/drain/process_drain.h"

#include "agent/drain/open_calls.h"
#include "agent/drain/other_program.h"
#include "agent/drain/refused_events.h"
#include "agent/drain/thread_drain.h"
#include "agent/host/clock.h"
#include "agent/ptrace/proc_status.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Period of reading open chunks and of checking for ended threads. */
#define LOOK_NS UINT64_C(20000000)
/* A new thread may be about to name itself. Its records wait this long if its chunks have space. */
#define NAMING_NS 20e6
/* A missing tid may be the first sign that its process ends. The drain decides after this time. */
#define GONE_NS UINT64_C(60000000)
/* If a process requests a slot this long after one of its threads has ended, it did not end with
 * that thread. */
#define GONE_ALIVE_NS UINT64_C(1000000)
/* Periods of reading the threads' CPU times: the minimum, the time for each thread, and the minimum
 * for a profile, which may run for days. */
#define WATCH_NS UINT64_C(20000000)
#define WATCH_THREAD_NS UINT64_C(500000)
#define WATCH_PROFILE_NS UINT64_C(1000000000)
/* Period of checking for ended threads while slots are short. */
#define END_LOOK_NS UINT64_C(1000000)
/* Number of returned slots after which waiting threads are woken. */
enum { WOKEN_AFTER = 32 };

void sj_process_drain_name_arena(const sj_drain_shared *shared, const char *arena_name, char *path)
{
    snprintf(path, PATH_MAX, "%s/%s", shared->options.runtime_directory, arena_name);
}

sj_status sj_process_drain_new(sj_drain_shared *shared, uint64_t number,
                               sj_tracked_process *tracked, const char *arena_name,
                               sj_process_drain **process)
{
    sj_process_drain *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    made->shared = shared;
    made->number = number;
    made->view.fd = -1;
    if (sj_unhooked_set_new(&made->freed) != SJ_OK) {
        free(made);
        return SJ_ENOMEM;
    }
    made->tracked = *tracked;
    sj_process_drain_name_arena(shared, arena_name, made->arena_path);
    *process = made;
    return SJ_OK;
}

void sj_process_drain_free(sj_process_drain *process)
{
    if (process == NULL) {
        return;
    }
    if (process->threads != NULL) {
        for (uint32_t i = 0; i < process->view.max_threads; i++) {
            sj_thread_drain_free(process->threads[i]);
        }
        free(process->threads);
    }
    if (process->governed != NULL) {
        sj_overhead_governor_remove(process->shared->governor, process->governed);
    }
    sj_unhooked_set_release(process->freed);
    free(process->times);
    sj_call_timing_free(process->timing);
    sj_arena_view_close(&process->view);
    sj_tracked_process_close(&process->tracked);
    free(process);
}

/* Enables the counting of calls if the policy asks for it. */
static void obey_clock(sj_process_drain *process)
{
    const sj_drain_options *options = &process->shared->options;
    if (process->timing != NULL) {
        sj_call_timing_set_rules(process->timing, options->rules,
                                 options->policy != NULL && options->policy->counts_calls);
    }
}

void sj_process_drain_restart(sj_process_drain *process)
{
    obey_clock(process);
    for (uint32_t i = 0; process->threads != NULL && i < process->view.max_threads; i++) {
        sj_thread_drain_free(process->threads[i]);
        process->threads[i] = NULL;
    }
    process->thread_count = 0;
    process->next_check_ns = 0;
    process->next_flush_ns = 0;
}

/* Creates the call timing if a policy may ask for it. A process needs it from its first record
 * on, because its first short record is decoded relative to an earlier record. */
static void choose_timing(sj_process_drain *process)
{
    const sj_drain_options *options = &process->shared->options;
    if (options->may_count_calls) {
        process->timing =
            sj_call_timing_new(&process->view, options->ns_per_tick, sj_clock_probe_ticks() / 2);
    }
    obey_clock(process);
}

/* True if CPU times are read. They are not read in flight mode, because they would fill the ring.
 * In direct mode the drain's thread has no time for it. A dead process has no counters. */
static bool is_watched(const sj_drain_shared *shared)
{
    return shared->flight == NULL && !shared->options.threadless && !shared->options.salvage;
}

/* Opens the arena if the agent has made it. After SJ_ENOMEM, the next call tries again. */
static sj_status open_arena(sj_process_drain *process)
{
    const sj_status status = sj_arena_view_open(process->arena_path, &process->view);
    if (status == SJ_EAGAIN || status == SJ_ENOMEM) {
        return status == SJ_EAGAIN ? SJ_OK : status;
    }
    if (status != SJ_OK || !sj_clock_is_of(sj_arena_view_header(&process->view))) {
        process->is_bad = true;
        return SJ_OK;
    }
    process->threads = calloc(process->view.max_threads, sizeof(*process->threads));
    process->times = is_watched(process->shared) ? calloc(1, sizeof(*process->times)) : NULL;
    if (process->threads == NULL) {
        free(process->times);
        process->times = NULL;
        sj_arena_view_close(&process->view);
        return SJ_ENOMEM;
    }
    choose_timing(process);
    process->is_open = true;
    atomic_store(&sj_arena_view_header(&process->view)->consumer, (uint32_t)getpid());
    process->shared->ended.processes++;
    return SJ_OK;
}

/* True if a later slot has the same tid, so the tid was reused for a new thread. */
static bool has_successor(const sj_process_drain *process, const sj_thread_drain *thread)
{
    for (uint32_t i = 0; i < process->view.max_threads; i++) {
        const sj_thread_drain *other = process->threads[i];
        if (other != NULL && other != thread && other->emitter.tid == thread->emitter.tid &&
            other->emitter.start_ticks > thread->emitter.start_ticks) {
            return true;
        }
    }
    return false;
}

/* Reads the rest of an ended thread and frees its slot. */
static sj_status end_thread(sj_process_drain *process, uint32_t slot, bool orderly, unsigned flags,
                            sj_read_mode mode, uint64_t now_ns)
{
    sj_thread_drain *thread = process->threads[slot];
    uint64_t records = 0;
    SJ_TRY(sj_thread_drain_read(thread, mode, now_ns, &records));
    SJ_TRY(sj_thread_drain_end(thread, orderly, flags));
    sj_thread_drain_add_counters(thread, &process->shared->ended);
    if (mode == SJ_READ_LAST) {
        sj_arena_view_recycle(&process->view, slot);
    }
    sj_thread_drain_free(thread);
    process->threads[slot] = NULL;
    process->thread_count--;
    return SJ_OK;
}

static uint64_t slot_requests(const sj_process_drain *process)
{
    return atomic_load(&sj_arena_view_header(&process->view)->slot_requests) + 1;
}

/* True if a thread has ended and its process continues. */
static bool is_ended_alone(const sj_process_drain *process, sj_thread_drain *thread,
                           uint64_t now_ns)
{
    if (now_ns - thread->gone_ns < GONE_ALIVE_NS) {
        return false;
    }
    if (thread->gone_requests == 0) {
        thread->gone_requests = slot_requests(process);
    }
    if (now_ns - thread->gone_ns < GONE_NS && thread->gone_requests == slot_requests(process)) {
        return false;
    }
    return !sj_tracked_process_has_ended(&process->tracked) &&
           atomic_load(&sj_arena_view_header(&process->view)->state) != SJ_ARENA_ENDED;
}

/* Ends a thread whose tid has been missing for long enough. */
static sj_status check_for_end(sj_process_drain *process, uint32_t slot, uint64_t now_ns)
{
    sj_thread_drain *thread = process->threads[slot];
    if (sj_tracked_process_has_thread(&process->tracked, thread->emitter.tid) &&
        !has_successor(process, thread)) {
        thread->gone_ns = 0;
        return SJ_OK;
    }
    if (thread->gone_ns == 0) {
        thread->gone_ns = now_ns;
        thread->gone_requests = 0;
        return SJ_OK;
    }
    return is_ended_alone(process, thread, now_ns)
               ? end_thread(process, slot, true, 0, SJ_READ_LAST, now_ns)
               : SJ_OK;
}

/* True if the policy chooses threads by name and this thread may not have its name yet. */
static bool is_too_young(const sj_process_drain *process, const sj_thread_slot *slot)
{
    const sj_policy_judge judge = sj_drain_judge(process->shared);
    return sj_policy_judge_filters_threads(&judge) && !process->is_finishing &&
           atomic_load(&slot->chunk_sequence) <= process->view.chunks_per_thread / 2 &&
           (double)(sj_clock_ticks() - slot->start_ticks) * judge.ns_per_tick < NAMING_NS;
}

static sj_status poll_slot(sj_process_drain *process, uint32_t slot, bool is_check_due, bool flush,
                           uint64_t now_ns, uint64_t *records)
{
    const uint64_t now_ticks = sj_clock_ticks();
    /* Pairs with the release of the thread that filled the slot. */
    const sj_thread_slot *shown = sj_arena_view_slot(&process->view, slot);
    const uint32_t state = atomic_load_explicit(&shown->state, memory_order_acquire);
    if (process->threads[slot] == NULL) {
        if (state != SJ_THREAD_LIVE || is_too_young(process, shown)) {
            return SJ_OK;
        }
        SJ_TRY(sj_thread_drain_new(process, slot, &process->threads[slot]));
        process->thread_count++;
        SJ_TRY(sj_thread_drain_watch(process->threads[slot]));
    } else if (is_check_due && !process->threads[slot]->emitter.is_announced &&
               process->threads[slot]->gone_ns == 0) {
        /* The thread lives. The frame of a thread that has ended is sent at its end. */
        SJ_TRY(sj_thread_emitter_announce(&process->threads[slot]->emitter));
    }
    sj_thread_drain *thread = process->threads[slot];
    if (is_check_due) {
        sj_thread_drain_follow_name(thread);
    }
    SJ_TRY(
        sj_thread_drain_read(thread, is_check_due ? SJ_READ_ALL : SJ_READ_CLOSED, now_ns, records));
    if (is_check_due) {
        sj_call_filter_watch(&thread->stages.filter, now_ticks);
    }
    if (flush) {
        SJ_TRY(sj_thread_drain_flush(thread));
    }
    return is_check_due ? check_for_end(process, slot, now_ns) : SJ_OK;
}

/* Passes the process to the governor once it may be traced, which is not before the attach has
 * ended. */
static void govern(sj_process_drain *process)
{
    sj_overhead_governor *governor = process->shared->governor;
    if (governor == NULL || process->was_governed) {
        return;
    }
    process->was_governed = true;
    if (sj_overhead_governor_add(governor, process->number, process->tracked.pid, process->freed,
                                 &process->governed) != SJ_OK) {
        process->governed = NULL;
    }
    for (uint32_t i = 0; i < process->view.max_threads; i++) {
        if (process->threads[i] != NULL) {
            process->threads[i]->stages.governed = process->governed;
        }
    }
}

/* Reports in the arena whether its file system is nearly full, if the agent makes no system
 * calls. */
static void check_disk_space(const sj_process_drain *process)
{
    enum { LITTLE_BYTES = 4 << 20 };
    struct statvfs status;
    if (process->is_confined && fstatvfs(process->view.fd, &status) == 0) {
        const bool is_full =
            status.f_blocks != 0 && (uint64_t)status.f_bavail * status.f_frsize < LITTLE_BYTES;
        atomic_store(&sj_arena_view_header(&process->view)->is_full, is_full);
    }
}

/* If the process has a seccomp filter, reports that to the agent: system calls may then kill the
 * process. */
static void check_for_filter(sj_process_drain *process)
{
    sj_proc_status facts;
    if (!process->is_confined && sj_proc_status_read(process->tracked.pid, &facts) == SJ_OK &&
        facts.is_confined) {
        process->is_confined = true;
        atomic_store(&sj_arena_view_header(&process->view)->is_confined, 1);
    }
}

/* Reads the threads' CPU times, and reports them when blocks are flushed. */
static sj_status watch_threads(sj_process_drain *process, bool flush, uint64_t now_ns)
{
    const uint64_t least_ns = process->shared->profiler != NULL ? WATCH_PROFILE_NS : WATCH_NS;
    const uint64_t share_ns = process->thread_count * WATCH_THREAD_NS;
    if (process->times == NULL) {
        return SJ_OK;
    }
    if (now_ns >= process->next_watch_ns && !sj_tracked_process_has_ended(&process->tracked)) {
        process->next_watch_ns = now_ns + (share_ns > least_ns ? share_ns : least_ns);
        for (uint32_t slot = 0; slot < process->view.max_threads; slot++) {
            SJ_TRY(process->threads[slot] != NULL ? sj_thread_drain_watch(process->threads[slot])
                                                  : SJ_OK);
        }
    }
    return flush && !process->is_finishing
               ? sj_thread_times_send(process->times, process->shared->options.writer,
                                      process->number)
               : SJ_OK;
}

/* Frees the slots of ended threads early if a thread waits for a slot. Also does so if more than
 * half of the slots are used and threads request slots. */
static sj_status check_for_ends(sj_process_drain *process, uint64_t now_ns)
{
    const sj_arena_header *header = sj_arena_view_header(&process->view);
    const uint64_t requests = slot_requests(process);
    const bool is_short = process->thread_count > process->view.max_threads / 2 &&
                          requests != process->seen_slot_requests;
    if (now_ns < process->next_end_check_ns ||
        (!is_short && atomic_load(&header->slot_waiters) == 0)) {
        return SJ_OK;
    }
    process->next_end_check_ns = now_ns + END_LOOK_NS;
    process->seen_slot_requests = requests;
    uint32_t ended = 0;
    for (uint32_t slot = 0; slot < process->view.max_threads; slot++) {
        if (process->threads[slot] == NULL) {
            continue;
        }
        SJ_TRY(check_for_end(process, slot, now_ns));
        ended += process->threads[slot] == NULL;
        if (ended == WOKEN_AFTER) {
            sj_arena_view_wake(&process->view);
            ended = 0;
        }
    }
    sj_arena_view_wake(&process->view);
    return SJ_OK;
}

static void check_for_program(sj_process_drain *process)
{
    if (!process->has_executed && !process->is_finishing) {
        process->has_executed = sj_other_program_runs(process);
    }
}

sj_status sj_process_drain_poll(sj_process_drain *process, uint64_t now_ns, uint64_t *records)
{
    if (!process->is_open && !process->is_bad) {
        const sj_status opened = open_arena(process);
        SJ_TRY(opened == SJ_ENOMEM ? SJ_OK : opened); /* there may be memory at the next poll */
    }
    if (!process->is_open || atomic_load(&process->shared->held_pid) == process->tracked.pid) {
        return SJ_OK;
    }
    govern(process);
    const bool is_check_due = now_ns >= process->next_check_ns;
    const bool flush = now_ns >= process->next_flush_ns;
    if (is_check_due) {
        process->next_check_ns = now_ns + LOOK_NS;
        check_for_program(process);
        check_for_filter(process);
        check_disk_space(process);
    }
    const uint64_t now_ticks = sj_clock_ticks();
    if (flush) {
        const uint32_t flush_ms = process->shared->options.flush_ms;
        process->next_flush_ns = now_ns + UINT64_C(1000000) * (flush_ms != 0 ? flush_ms : 1000);
    }
    const uint32_t begun = sj_arena_view_slots_begun(&process->view);
    for (uint32_t slot = 0; slot < begun; slot++) {
        SJ_TRY(poll_slot(process, slot, is_check_due || flush, flush, now_ns, records));
    }
    process->flushed_ticks = flush ? now_ticks : process->flushed_ticks;
    SJ_TRY(watch_threads(process, flush, now_ns));
    return check_for_ends(process, now_ns);
}

sj_status sj_process_drain_flush(sj_process_drain *process)
{
    for (uint32_t slot = 0; process->is_open && slot < process->view.max_threads; slot++) {
        if (process->threads[slot] != NULL) {
            SJ_TRY(sj_thread_drain_flush(process->threads[slot]));
        }
    }
    return SJ_OK;
}

sj_status sj_process_drain_catch_up(sj_process_drain *process, uint64_t now_ns)
{
    uint64_t records = 0;
    process->next_check_ns = now_ns;
    SJ_TRY(sj_process_drain_poll(process, now_ns, &records));
    return sj_process_drain_flush(process);
}

sj_status sj_process_drain_set_policy(sj_process_drain *process, bool announce)
{
    obey_clock(process);
    for (uint32_t slot = 0; process->is_open && slot < process->view.max_threads; slot++) {
        if (process->threads[slot] != NULL) {
            SJ_TRY(sj_thread_drain_set_policy(process->threads[slot]));
            SJ_TRY(announce ? sj_thread_emitter_announce(&process->threads[slot]->emitter) : SJ_OK);
        }
    }
    return SJ_OK;
}

/* Reports the calls of threads that found no slot. */
static sj_status report_refused(sj_process_drain *process)
{
    const sj_arena_header *header = sj_arena_view_header(&process->view);
    sj_drain_counters *ended = &process->shared->ended;
    sj_refused_events refused;
    SJ_TRY(sj_refused_events_report(&process->view, process->shared->options.writer, &refused));
    ended->refused_threads += atomic_load(&header->threads_refused);
    ended->lost_calls += refused.calls;
    ended->lost_events += refused.events;
    return SJ_OK;
}

/* Adds the arena's counters to the drain's totals. */
static void add_arena_counters(sj_process_drain *process, bool is_salvaged)
{
    sj_arena_header *header = sj_arena_view_header(&process->view);
    sj_drain_counters *ended = &process->shared->ended;
    sj_process_end *end = &process->end;
    if (process->times != NULL) {
        ended->watched_cpu_ns += process->times->cpu_ns;
        ended->watched_ready_ns += process->times->ready_ns;
    }
    end->disarm_reason = atomic_load(&header->disarm_reason);
    if (end->disarm_reason == SJ_DISARM_NONE && atomic_load(&header->is_confined) != 0) {
        end->disarm_reason = SJ_DISARM_CONFINED;
    }
    if (process->has_executed) {
        sj_other_program_count(process);
        end->disarm_reason = SJ_DISARM_EXECUTED;
    } else if (ended->disarm_reason == 0) {
        ended->disarm_reason = end->disarm_reason;
    }
    for (uint32_t i = 0; i < SJ_UNRECORDED_KINDS; i++) {
        ended->unrecorded[i] += atomic_load(sj_arena_unrecorded(header, i));
    }
    ended->unrecorded[SJ_UNRECORDED_FORK] += atomic_load(&header->forks_unannounced);
    ended->refused_functions += atomic_load(&header->functions_refused);
    ended->refused_pages += atomic_load(&header->pages_refused);
    ended->lost_values += atomic_load(&header->values_lost);
    ended->handler_events += atomic_load(&header->slow_path_reentries);
    ended->agent_cpu_ns += atomic_load(&header->agent_cpu_ns);
    ended->salvaged_processes += is_salvaged;
    if (is_salvaged && process->shared->triggers != NULL) {
        sj_triggers_event(process->shared->triggers, SJ_TRIGGER_CRASH, "", 0, sj_clock_ticks(), 0);
    }
}

static sj_status finish_arena(sj_process_drain *process, bool is_gone)
{
    sj_arena_header *header = sj_arena_view_header(&process->view);
    const uint32_t state = atomic_load(&header->state);
    /* A process that replaced its program (exec) lost nothing by that. */
    const bool is_salvaged =
        process->shared->options.salvage || (!process->is_replaced && !process->has_executed &&
                                             sj_tracked_process_has_ended(&process->tracked) &&
                                             state != SJ_ARENA_ENDED && state != SJ_ARENA_DISARMED);
    uint64_t records = 0;
    process->is_finishing = true;
    process->is_gone = is_gone;
    SJ_TRY(sj_process_drain_poll(process, process->next_flush_ns, &records));
    SJ_TRY(sj_open_calls_report_remaining(process));
    for (uint32_t slot = 0; slot < process->view.max_threads; slot++) {
        if (process->threads[slot] != NULL) {
            const bool has_exited =
                atomic_load(&sj_arena_view_slot(&process->view, slot)->has_exited);
            SJ_TRY(end_thread(process, slot, has_exited, is_salvaged ? SJ_BLOCK_RECOVERED : 0,
                              is_gone ? SJ_READ_LAST : SJ_READ_REST, process->next_flush_ns));
        }
    }
    /* For a process shorter than one period, there is nothing to report. */
    SJ_TRY(
        process->times != NULL && process->times->watched_ns >= WATCH_NS
            ? sj_thread_times_send(process->times, process->shared->options.writer, process->number)
            : SJ_OK);
    const sj_overwritten overwritten = header->overwritten;
    SJ_TRY(sj_registry_report_overwritten(process->shared->options.registry, process->number,
                                          &overwritten));
    SJ_TRY(report_refused(process));
    add_arena_counters(process, is_salvaged);
    return SJ_OK;
}

sj_status sj_process_drain_finish(sj_process_drain *process, bool is_gone)
{
    sj_process_end *end = &process->end;
    process->ended_ticks = is_gone ? sj_clock_ticks() : 0;
    end->ended_ticks = process->ended_ticks;
    end->has_status = !process->is_replaced && sj_tracked_process_has_ended(&process->tracked) &&
                      sj_tracked_process_find_status(&process->tracked, &end->wait_status);
    if (!process->is_open && !process->is_bad) {
        SJ_TRY(open_arena(process));
    }
    process->has_executed = process->has_executed ||
                            (is_gone && !process->is_replaced && sj_other_program_has_run(process));
    if (process->is_open && !process->is_read) {
        SJ_TRY(finish_arena(process, is_gone));
        unlink(process->arena_path);
    } else if (!process->is_read) {
        end->disarm_reason = process->is_bad ? SJ_DISARM_UNREADABLE : SJ_DISARM_NO_ARENA;
        process->shared->ended.processes_unreadable += process->is_bad;
        process->shared->ended.processes_without_arena += !process->is_bad;
    }
    process->is_read = true;
    return sj_registry_end_process(process->shared->options.registry, process->number, end);
}

void sj_process_drain_add_counters(const sj_process_drain *process, sj_drain_counters *counters)
{
    counters->live_processes++;
    for (uint32_t i = 0; process->is_open && i < process->view.max_threads; i++) {
        if (process->threads[i] != NULL) {
            sj_thread_drain_add_counters(process->threads[i], counters);
        }
    }
}
