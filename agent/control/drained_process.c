#include "agent/control/drained_process.h"

#include "agent/control/attach_check.h"
#include "agent/control/clock.h"
#include "agent/control/drained_thread.h"
#include "agent/control/preopened.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Open chunks and ended threads are looked at so often. */
#define LOOK_NS UINT64_C(20000000)
/* A thread that has just begun may be about to name itself; its records wait while there is room.
 */
#define NAMING_NS 20e6
/* A tid that is gone may be the first sign of the end of its process: what it means is decided
 * after this time. */
#define GONE_NS UINT64_C(60000000)

sj_status sj_drained_process_new(sj_drain_shared *shared, uint64_t number, pid_t pid,
                                 const char *arena_name, sj_drained_process **process)
{
    sj_drained_process *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    made->shared = shared;
    made->number = number;
    made->pid = pid;
    made->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    made->view.fd = -1;
    if (sj_freed_new(&made->freed) != SJ_OK) {
        sj_drained_process_free(made);
        return SJ_ENOMEM;
    }
    snprintf(made->arena_path, sizeof(made->arena_path), "%s/%s", shared->options.runtime_directory,
             arena_name);
    *process = made;
    return SJ_OK;
}

void sj_drained_process_free(sj_drained_process *process)
{
    if (process == NULL) {
        return;
    }
    if (process->threads != NULL) {
        for (uint32_t i = 0; i < process->view.max_threads; i++) {
            sj_drained_thread_free(process->threads[i]);
        }
        free(process->threads);
    }
    if (process->governed != NULL) {
        sj_governor_remove(process->shared->governor, process->governed);
    }
    sj_freed_release(process->freed);
    sj_arena_view_close(&process->view);
    if (process->pidfd >= 0) {
        close(process->pidfd);
    }
    free(process);
}

sj_status sj_drained_process_block(const sj_drained_process *process, uint64_t thread,
                                   const sj_block_header *header, sj_slice bytes)
{
    const sj_drain_shared *shared = process->shared;
    return shared->profiler != NULL ? sj_profiler_block(shared->profiler, thread, bytes)
           : shared->flight != NULL ? sj_flight_block(shared->flight, header, bytes)
                                    : sj_emitter_block(shared->options.emitter, header, bytes);
}

bool sj_drained_process_is_gone(const sj_drained_process *process)
{
    if (process->pidfd >= 0) {
        struct pollfd polled = {.fd = process->pidfd, .events = POLLIN};
        return poll(&polled, 1, 0) > 0;
    }
    return kill(process->pid, 0) != 0 && errno == ESRCH;
}

static sj_status open_arena(sj_drained_process *process)
{
    const sj_status status = sj_arena_view_open(process->arena_path, &process->view);
    if (status == SJ_EAGAIN) {
        return SJ_OK;
    }
    if (status != SJ_OK || !sj_clock_is_of(sj_arena_view_header(&process->view))) {
        process->is_bad = true;
        return SJ_OK;
    }
    process->threads = calloc(process->view.max_threads, sizeof(*process->threads));
    if (process->threads == NULL) {
        return SJ_ENOMEM;
    }
    process->is_open = true;
    process->shared->ended.processes++;
    return SJ_OK;
}

bool sj_drained_process_has_thread(const sj_drained_process *process, uint32_t tid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task/%u", (int)process->pid, tid);
    return access(path, F_OK) == 0;
}

/* has_successor: a later slot of the same tid says that the number was given to a new thread. */
static bool has_successor(const sj_drained_process *process, const sj_drained_thread *thread)
{
    for (uint32_t i = 0; i < process->view.max_threads; i++) {
        const sj_drained_thread *other = process->threads[i];
        if (other != NULL && other != thread && other->tid == thread->tid &&
            other->start_ticks > thread->start_ticks) {
            return true;
        }
    }
    return false;
}

/* end_thread reads the rest of a thread that is gone and frees its slot for others. */
static sj_status end_thread(sj_drained_process *process, uint32_t slot, bool orderly,
                            unsigned flags, sj_read_mode mode, uint64_t now_ns)
{
    sj_drained_thread *thread = process->threads[slot];
    uint64_t records = 0;
    SJ_TRY(sj_drained_thread_read(thread, mode, now_ns, &records));
    SJ_TRY(sj_drained_thread_end(thread, orderly, flags));
    sj_drained_thread_add_counters(thread, &process->shared->ended);
    if (mode == SJ_READ_LAST) {
        sj_arena_view_recycle(&process->view, slot);
    }
    sj_drained_thread_free(thread);
    process->threads[slot] = NULL;
    return SJ_OK;
}

/* look_for_end ends a thread whose tid has been gone for long enough. */
static sj_status look_for_end(sj_drained_process *process, uint32_t slot, uint64_t now_ns)
{
    sj_drained_thread *thread = process->threads[slot];
    if (sj_drained_process_has_thread(process, thread->tid) && !has_successor(process, thread)) {
        thread->gone_ns = 0;
        return SJ_OK;
    }
    if (thread->gone_ns == 0) {
        thread->gone_ns = now_ns;
        return SJ_OK;
    }
    if (now_ns - thread->gone_ns < GONE_NS || sj_drained_process_is_gone(process) ||
        atomic_load(&sj_arena_view_header(&process->view)->state) == SJ_ARENA_ENDED) {
        return SJ_OK;
    }
    return end_thread(process, slot, true, 0, SJ_READ_LAST, now_ns);
}

/* is_too_young: which threads are recorded goes by their names, and this one may have none yet. */
static bool is_too_young(const sj_drained_process *process, const sj_thread_slot *slot)
{
    const sj_drain_options *options = &process->shared->options;
    return options->policy != NULL && options->policy->thread_count != 0 &&
           !process->is_finishing &&
           atomic_load(&slot->chunk_sequence) <= process->view.chunks_per_thread / 2 &&
           (double)(sj_clock_ticks() - slot->start_ticks) * options->ns_per_tick < NAMING_NS;
}

static sj_status poll_slot(sj_drained_process *process, uint32_t slot, bool look, bool flush,
                           uint64_t now_ns, uint64_t *records)
{
    /* Pairs with the release of the thread that filled the slot. */
    const sj_thread_slot *shown = sj_arena_view_slot(&process->view, slot);
    const uint32_t state = atomic_load_explicit(&shown->state, memory_order_acquire);
    if (process->threads[slot] == NULL) {
        if (state != SJ_THREAD_LIVE || is_too_young(process, shown)) {
            return SJ_OK;
        }
        SJ_TRY(sj_drained_thread_new(process, slot, &process->threads[slot]));
    }
    sj_drained_thread *thread = process->threads[slot];
    if (look) {
        sj_drained_thread_follow_name(thread);
    }
    SJ_TRY(sj_drained_thread_read(thread, look ? SJ_READ_ALL : SJ_READ_CLOSED, now_ns, records));
    if (flush) {
        SJ_TRY(sj_drained_thread_flush(thread));
    }
    return look ? look_for_end(process, slot, now_ns) : SJ_OK;
}

/* govern hands the process to the governor when it may be traced: not while it is attached to. */
static void govern(sj_drained_process *process)
{
    sj_governor *governor = process->shared->governor;
    if (governor == NULL || process->was_governed) {
        return;
    }
    process->was_governed = true;
    if (sj_governor_add(governor, process->number, process->pid, process->freed,
                        &process->governed) != SJ_OK) {
        process->governed = NULL;
    }
    for (uint32_t i = 0; i < process->view.max_threads; i++) {
        if (process->threads[i] != NULL) {
            process->threads[i]->reader.sifter.governed = process->governed;
        }
    }
}

/* look_for_filter tells the agent that system calls may end its process. */
static void look_for_filter(sj_drained_process *process)
{
    sj_process_facts facts;
    if (!process->is_confined && sj_process_facts_read(process->pid, &facts) == SJ_OK &&
        facts.is_confined) {
        process->is_confined = true;
        atomic_store(&sj_arena_view_header(&process->view)->is_confined, 1);
    }
}

sj_status sj_drained_process_poll(sj_drained_process *process, uint64_t now_ns, uint64_t *records)
{
    if (!process->is_open && !process->is_bad) {
        SJ_TRY(open_arena(process));
    }
    if (!process->is_open || atomic_load(&process->shared->held_pid) == process->pid) {
        return SJ_OK;
    }
    govern(process);
    const bool look = now_ns >= process->next_look_ns;
    const bool flush = now_ns >= process->next_flush_ns;
    if (look) {
        process->next_look_ns = now_ns + LOOK_NS;
        look_for_filter(process);
    }
    if (flush) {
        const uint32_t flush_ms = process->shared->options.flush_ms;
        process->next_flush_ns = now_ns + UINT64_C(1000000) * (flush_ms != 0 ? flush_ms : 1000);
    }
    for (uint32_t slot = 0; slot < process->view.max_threads; slot++) {
        SJ_TRY(poll_slot(process, slot, look || flush, flush, now_ns, records));
    }
    return SJ_OK;
}

sj_status sj_drained_process_flush(sj_drained_process *process)
{
    for (uint32_t slot = 0; process->is_open && slot < process->view.max_threads; slot++) {
        if (process->threads[slot] != NULL) {
            SJ_TRY(sj_drained_thread_flush(process->threads[slot]));
        }
    }
    return SJ_OK;
}

sj_status sj_drained_process_catch_up(sj_drained_process *process, uint64_t now_ns)
{
    uint64_t records = 0;
    process->next_look_ns = now_ns;
    SJ_TRY(sj_drained_process_poll(process, now_ns, &records));
    return sj_drained_process_flush(process);
}

sj_status sj_drained_process_set_policy(sj_drained_process *process, bool announce)
{
    for (uint32_t slot = 0; process->is_open && slot < process->view.max_threads; slot++) {
        if (process->threads[slot] != NULL) {
            SJ_TRY(sj_drained_thread_set_policy(process->threads[slot]));
            SJ_TRY(announce ? sj_drained_thread_announce(process->threads[slot]) : SJ_OK);
        }
    }
    return SJ_OK;
}

/* tell_refused reports threads that found no slot: how many calls they made is not known. */
static sj_status tell_refused(sj_drained_process *process)
{
    const sj_arena_header *header = sj_arena_view_header(&process->view);
    const uint64_t events = atomic_load(&header->events_refused);
    if (events == 0 && atomic_load(&header->threads_refused) == 0) {
        return SJ_OK;
    }
    process->shared->ended.lost_events += events;
    return sj_emitter_gap(process->shared->options.emitter, SJ_GAP_NO_THREAD_SLOT, 0, 0, 0, events,
                          header->attach_ticks, sj_clock_ticks());
}

static sj_status finish_arena(sj_drained_process *process, bool is_gone,
                              sj_process_end *process_end)
{
    const sj_arena_header *header = sj_arena_view_header(&process->view);
    const uint32_t state = atomic_load(&header->state);
    /* A process that replaced its program (exec) lost nothing by that. */
    const bool is_salvaged =
        process->shared->options.salvage || (sj_drained_process_is_gone(process) &&
                                             state != SJ_ARENA_ENDED && state != SJ_ARENA_DISARMED);
    uint64_t records = 0;
    process->is_finishing = true;
    SJ_TRY(sj_drained_process_poll(process, process->next_flush_ns, &records));
    SJ_TRY(sj_preopened_tell_rest(process));
    for (uint32_t slot = 0; slot < process->view.max_threads; slot++) {
        if (process->threads[slot] != NULL) {
            const bool has_left = atomic_load(&sj_arena_view_slot(&process->view, slot)->has_left);
            SJ_TRY(end_thread(process, slot, has_left, is_salvaged ? SJ_BLOCK_SALVAGED : 0,
                              is_gone ? SJ_READ_LAST : SJ_READ_ALL, process->next_flush_ns));
        }
    }
    process_end->disarm_reason = atomic_load(&header->disarm_reason);
    if (process_end->disarm_reason == SJ_DISARM_NONE && process->is_confined) {
        process_end->disarm_reason = SJ_DISARM_CONFINED;
    }
    if (process->shared->ended.disarm_reason == 0) {
        process->shared->ended.disarm_reason = process_end->disarm_reason;
    }
    process->shared->ended.salvaged_processes += is_salvaged;
    if (is_salvaged && process->shared->triggers != NULL) {
        sj_triggers_event(process->shared->triggers, SJ_TRIGGER_CRASH, "", 0, sj_clock_ticks(), 0);
    }
    return tell_refused(process);
}

sj_status sj_drained_process_finish(sj_drained_process *process, bool is_gone)
{
    sj_process_end end = {.ended_ticks = is_gone ? sj_clock_ticks() : 0};
    if (!process->is_open && !process->is_bad) {
        SJ_TRY(open_arena(process));
    }
    if (process->is_open) {
        SJ_TRY(finish_arena(process, is_gone, &end));
        unlink(process->arena_path);
    }
    return sj_roster_end_process(process->shared->options.roster, process->number, &end);
}

void sj_drained_process_add_counters(const sj_drained_process *process, sj_drain_counters *counters)
{
    counters->live_processes++;
    for (uint32_t i = 0; process->is_open && i < process->view.max_threads; i++) {
        if (process->threads[i] != NULL) {
            sj_drained_thread_add_counters(process->threads[i], counters);
        }
    }
}
