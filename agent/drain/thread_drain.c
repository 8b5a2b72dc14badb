#include "agent/drain/thread_drain.h"

#include "agent/drain/open_calls.h"
#include "agent/host/clock.h"
#include "agent/ptrace/proc_status.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_PAUSE_MIN_NS UINT64_C(10000000)
#define NAME_PAUSE_MAX_NS UINT64_C(2000000000)

/* True if the thread was read before: by a recorder that was killed, or until a step failed. */
static bool is_known(const sj_drain_shared *shared, const sj_thread_slot *slot)
{
    return (shared->options.salvage || shared->resumes) &&
           (slot->cursor.thread != 0 || slot->cursor.sequence != 0);
}

/* True for the first thread of a forked process, unless a killed recorder or a failed step may have
 * read its beginning. */
static bool is_first_of_fork(const sj_thread_drain *thread, const sj_thread_slot *slot)
{
    const sj_process_drain *process = thread->process;
    return thread->emitter.tid == (uint32_t)process->tracked.pid &&
           !process->shared->options.salvage && !is_known(process->shared, slot) &&
           sj_registry_is_forked(process->shared->options.registry, process->number);
}

static sj_status new_assembler(sj_thread_drain *thread, const sj_thread_slot *slot)
{
    const sj_drain_shared *shared = thread->process->shared;
    const sj_policy *policy = shared->options.policy;
    sj_assembler_options options = {
        .session = *sj_frame_writer_session(shared->options.writer),
        .start_ticks = slot->start_ticks,
        .clock_step = shared->clock_step,
        .kept_step = shared->kept_step,
        .is_forked = is_first_of_fork(thread, slot),
        .has_untimed_exits = thread->process->timing != NULL,
        .encoder = shared->encoder,
        .value_rules = policy != NULL ? policy->selection.values : NULL,
    };
    sj_arena_view_stack(slot, &options.stack_low, &options.stack_high);
    sj_assembler_sink sink;
    sj_thread_emitter_sink(&thread->emitter, &sink);
    return sj_assembler_new(&options, &sink, &thread->assembler);
}

/* True if the thread's name must be read. Names are read rarely, because most threads name
 * themselves once, at their start. Exceptions are policies that use names, and the end of the
 * process.
 *
 * The name cannot be read in a process that has ended. A process that records itself must not read
 * it if its seccomp filter may forbid the system call. */
static bool is_name_due(sj_thread_drain *thread)
{
    const sj_process_drain *process = thread->process;
    const sj_policy_judge judge = sj_drain_judge(process->shared);
    const uint64_t now_ns = sj_clock_ns(CLOCK_MONOTONIC);
    if (process->shared->options.salvage ||
        (process->is_confined && process->tracked.pid == getpid()) ||
        (now_ns < thread->next_name_ns && !process->is_finishing &&
         !sj_policy_judge_asks_names(&judge))) {
        return false;
    }
    thread->name_pause_ns = thread->name_pause_ns == 0 ? NAME_PAUSE_MIN_NS : thread->name_pause_ns;
    thread->next_name_ns = now_ns + thread->name_pause_ns;
    if (thread->name_pause_ns < NAME_PAUSE_MAX_NS) {
        thread->name_pause_ns *= 2;
    }
    return true;
}

/* Reads the name that the agent stored at exit. Returns false if it stored none. */
static bool read_last_name(const sj_thread_drain *thread, char name[SJ_THREAD_NAME_BYTES])
{
    const sj_thread_slot *slot = sj_arena_view_slot(&thread->process->view, thread->emitter.slot);
    memcpy(name, slot->last_name, sizeof(slot->last_name));
    name[sizeof(slot->last_name)] = '\0';
    return name[0] != '\0';
}

/* Reads the thread's current name, or its last one. Returns false if it is unknown or not due. */
static bool find_name(sj_thread_drain *thread, char name[SJ_THREAD_NAME_BYTES])
{
    const sj_tracked_process *tracked = &thread->process->tracked;
    return thread->process->is_gone
               ? read_last_name(thread, name)
               : is_name_due(thread) &&
                     sj_thread_read_name(tracked->pid, thread->emitter.tid, name);
}

void sj_thread_drain_follow_name(sj_thread_drain *thread)
{
    const sj_process_drain *process = thread->process;
    char name[sizeof(thread->emitter.name)];
    if (!find_name(thread, name) || strcmp(name, thread->emitter.name) == 0 ||
        /* An exec gives the first thread the name of the new program. */
        (!process->is_gone && thread->emitter.tid == (uint32_t)process->tracked.pid &&
         sj_tracked_process_is_replaced(&process->tracked))) {
        return;
    }
    const sj_policy_judge judge = sj_drain_judge(process->shared);
    sj_thread_emitter_rename(&thread->emitter, name);
    sj_call_filter_drop_all(&thread->stages.filter, !sj_policy_judge_thread(&judge, name));
    /* An error can be ignored: the next frame of the thread contains the same. */
    (void)!sj_thread_emitter_update(&thread->emitter);
}

sj_status sj_thread_drain_set_policy(sj_thread_drain *thread)
{
    const sj_drain_shared *shared = thread->process->shared;
    const sj_policy_judge judge = sj_drain_judge(shared);
    if (judge.policy == NULL) {
        return SJ_OK;
    }
    SJ_TRY(sj_assembler_restore_frames(thread->assembler));
    sj_assembler_set_rules(thread->assembler, judge.policy->selection.values);
    sj_assembler_set_steps(thread->assembler, shared->clock_step, shared->kept_step);
    return sj_record_stages_set_policy(&thread->stages, &judge, sj_clock_ticks());
}

/* The agent writes pids and tids as the process itself knows them. */
static uint32_t tid_of(const sj_process_drain *process, const sj_thread_slot *slot)
{
    return slot->tid == sj_arena_view_header(&process->view)->pid
               ? (uint32_t)process->tracked.pid
               : sj_tracked_process_find_thread(&process->tracked, slot->tid);
}

static void init_emitter(sj_thread_drain *thread, uint32_t slot_number, bool was_read)
{
    const sj_process_drain *process = thread->process;
    sj_thread_slot *slot = sj_arena_view_slot(&process->view, slot_number);
    const uint32_t tid = tid_of(process, slot);
    thread->emitter = (sj_thread_emitter){.shared = process->shared,
                                          .view = &process->view,
                                          .slot = slot_number,
                                          .process = process->number,
                                          .number = was_read && slot->cursor.thread != 0
                                                        ? slot->cursor.thread
                                                        : sj_drain_next_thread(process->shared),
                                          .tid = tid,
                                          .is_main = tid == (uint32_t)process->tracked.pid,
                                          .start_ticks = slot->start_ticks};
    memcpy(thread->emitter.name, slot->name, sizeof(slot->name));
    sj_read_progress_init(&thread->emitter.progress, slot);
}

static void init_stages(sj_thread_drain *thread)
{
    const sj_process_drain *process = thread->process;
    sj_thread_emitter *emitter = &thread->emitter;
    const sj_staged_thread staged = {.slot = emitter->progress.slot,
                                     .view = &process->view,
                                     .registry = process->shared->options.registry,
                                     .process = process->number,
                                     .freed = process->freed,
                                     .governed = process->governed,
                                     .number = emitter->number,
                                     .name = emitter->name,
                                     .start_ticks = emitter->start_ticks};
    sj_record_stages_init(&thread->stages, &staged, thread->assembler, &emitter->progress);
    sj_assembler_set_optional_entries(thread->assembler, sj_unhooked_set_was_changed,
                                      process->freed);
}

/* Connects the reader, the stages, the assembler and the emitter. */
static sj_status connect(sj_thread_drain *thread, uint32_t slot_number)
{
    sj_process_drain *process = thread->process;
    sj_thread_slot *slot = sj_arena_view_slot(&process->view, slot_number);
    const bool was_read = is_known(process->shared, slot);
    init_emitter(thread, slot_number, was_read);
    SJ_TRY(new_assembler(thread, slot));
    thread->emitter.assembler = thread->assembler;
    SJ_TRY(sj_open_calls_enter(process, thread));
    thread->emitter.progress.unsent = thread->unflushed; /* calls that were open at attach */
    if (was_read) {
        sj_read_progress_resume(&thread->emitter.progress);
        SJ_TRY(sj_thread_emitter_report_unsent(&thread->emitter));
    }
    sj_chunk_reader_init(&thread->reader, &process->view, slot_number, &thread->emitter.progress,
                         process->shared->buffer);
    slot->cursor.thread = thread->emitter.number;
    init_stages(thread);
    if (process->timing != NULL) {
        SJ_TRY(sj_record_stages_count(&thread->stages, process->timing));
    }
    sj_thread_drain_follow_name(thread);
    return sj_thread_drain_set_policy(thread);
}

sj_status sj_thread_drain_new(sj_process_drain *process, uint32_t slot_number,
                              sj_thread_drain **thread)
{
    sj_thread_drain *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    made->process = process;
    const sj_status status = connect(made, slot_number);
    if (status != SJ_OK) {
        sj_thread_drain_free(made);
        return status;
    }
    sj_open_calls_forget(process, made);
    if (made->unflushed != 0) {
        sj_read_progress_settle(&made->emitter.progress, 0, made->unflushed);
    }
    *thread = made;
    return SJ_OK;
}

void sj_thread_drain_free(sj_thread_drain *thread)
{
    if (thread != NULL) {
        sj_record_stages_deinit(&thread->stages);
        sj_assembler_free(thread->assembler);
        sj_thread_emitter_deinit(&thread->emitter);
        free(thread);
    }
}

sj_status sj_thread_drain_read(sj_thread_drain *thread, sj_read_mode mode, uint64_t now_ns,
                               uint64_t *records)
{
    sj_record_batch batch;
    sj_chunk_reader_start(&thread->reader, mode, now_ns);
    while (sj_chunk_reader_next(&thread->reader, &batch)) {
        SJ_TRY(sj_record_stages_feed(&thread->stages, &batch));
        thread->unflushed += batch.count;
        *records += batch.count;
    }
    return SJ_OK;
}

/* True if a main thread has ended before its process. Its tid exists until the process ends. */
static bool has_ended_first(const sj_thread_drain *thread, uint64_t cpu_ns)
{
    const pid_t pid = thread->process->tracked.pid;
    sj_proc_thread facts;
    return thread->emitter.tid == (uint32_t)pid && cpu_ns == thread->clock.counters.cpu_ns &&
           sj_proc_thread_read(pid, pid, &facts) == SJ_OK && facts.state == 'Z';
}

/* Reads the thread's allocation counters from its slot. */
static void read_memory(const sj_thread_drain *thread, sj_thread_counters *counters)
{
    const sj_thread_slot *slot = sj_arena_view_slot(&thread->process->view, thread->emitter.slot);
    for (size_t i = 0; i < SJ_SLOT_MEMORY; i++) {
        const uint64_t and_one = atomic_load_explicit(&slot->memory[i], memory_order_relaxed);
        counters->has_memory |= and_one != 0;
        counters->memory[i] = and_one != 0 ? and_one - 1 : 0;
    }
}

sj_status sj_thread_drain_watch(sj_thread_drain *thread)
{
    sj_process_drain *process = thread->process;
    sj_thread_counters now = {0};
    /* A process that records itself must not make a system call that its seccomp filter may
     * forbid. */
    if (process->times == NULL || (process->is_confined && process->tracked.pid == getpid()) ||
        sj_thread_times_read(process->tracked.pid, thread->emitter.tid, &now.cpu_ns,
                             &now.ready_ns) != SJ_OK ||
        has_ended_first(thread, now.cpu_ns)) {
        return SJ_OK;
    }
    read_memory(thread, &now);
    return sj_thread_times_note(process->times, &thread->clock, thread->emitter.number,
                                sj_clock_ns(CLOCK_MONOTONIC), &now)
               ? sj_thread_times_send(process->times, process->shared->options.writer,
                                      process->number)
               : SJ_OK;
}

/* Ends the last step of a thread. */
static sj_status end_watch(sj_thread_drain *thread)
{
    sj_process_drain *process = thread->process;
    if (process->times == NULL) {
        return SJ_OK;
    }
    if (!sj_tracked_process_has_ended(&process->tracked)) {
        SJ_TRY(sj_thread_drain_watch(thread));
    }
    return sj_thread_times_rest(process->times, &thread->clock, thread->emitter.number)
               ? sj_thread_times_send(process->times, process->shared->options.writer,
                                      process->number)
               : SJ_OK;
}

sj_status sj_thread_drain_flush(sj_thread_drain *thread)
{
    if (!thread->emitter.is_announced) {
        SJ_TRY(sj_thread_emitter_announce(&thread->emitter));
    }
    if (thread->unflushed == 0) {
        return SJ_OK;
    }
    thread->unflushed = 0;
    sj_read_progress_save(&thread->emitter.progress);
    SJ_TRY(sj_assembler_flush(thread->assembler, sj_clock_ticks()));
    sj_thread_emitter_settle(&thread->emitter);
    return SJ_OK;
}

static uint64_t positive_difference(uint64_t all, uint64_t known)
{
    return all > known ? all - known : 0;
}

/* Reports the drops of a thread that ended while it dropped, and so left no note in its stream. */
static sj_status report_unnoted_drops(sj_thread_drain *thread, uint64_t now_ticks)
{
    sj_thread_emitter *emitter = &thread->emitter;
    sj_read_progress *progress = &emitter->progress;
    const sj_thread_slot *slot = progress->slot;
    sj_arena_view_discarded(emitter->view, emitter->slot, &emitter->discarded_calls,
                            &emitter->discarded_events);
    const uint64_t calls = positive_difference(
        atomic_load(&slot->dropped_calls) + emitter->discarded_calls, progress->noted_calls);
    const uint64_t events = positive_difference(
        atomic_load(&slot->dropped_events) + emitter->discarded_events, progress->noted_events);
    if (calls == 0 && events == 0) {
        return SJ_OK;
    }
    progress->noted_calls += calls;
    progress->noted_events += events;
    progress->unsent_calls += calls;
    progress->unsent += events;
    return sj_assembler_add_loss(thread->assembler, SJ_GAP_RING_FULL, calls, events, now_ticks);
}

sj_status sj_thread_drain_end(sj_thread_drain *thread, bool orderly, unsigned block_flags)
{
    const uint64_t gone_ticks = thread->process->ended_ticks;
    const uint64_t now_ticks = gone_ticks != 0 ? gone_ticks : sj_clock_ticks();
    SJ_TRY(end_watch(thread));
    SJ_TRY(sj_record_stages_end(&thread->stages, now_ticks));
    SJ_TRY(report_unnoted_drops(thread, now_ticks));
    SJ_TRY(sj_assembler_end(thread->assembler, now_ticks, orderly, block_flags));
    sj_read_progress_save(&thread->emitter.progress);
    return sj_thread_emitter_end(&thread->emitter, now_ticks);
}

void sj_thread_drain_add_counters(const sj_thread_drain *thread, sj_drain_counters *counters)
{
    const sj_thread_slot *slot = thread->emitter.progress.slot;
    sj_assembler_counters own;
    sj_assembler_get_counters(thread->assembler, &own);
    counters->threads++;
    counters->records += own.records;
    counters->calls += own.calls;
    counters->returned += own.returned;
    counters->unwound += own.unwound;
    if (own.longest_throw > counters->longest_throw) {
        counters->longest_throw = own.longest_throw;
    }
    counters->inherited_exits += own.inherited_exits;
    counters->orphan_exits += own.orphan_exits;
    counters->lost_calls += own.lost_calls + own.refused_calls;
    counters->lost_events += own.lost_events + own.refused_events;
    counters->lost_values += own.lost_values + thread->stages.filter.values.lost;
    counters->dropped_events +=
        atomic_load(&slot->dropped_events) + thread->emitter.discarded_events;
    counters->torn += thread->reader.torn;
    counters->short_records += thread->reader.short_records;
    counters->waited_ticks += atomic_load(&slot->waited_ticks);
}
