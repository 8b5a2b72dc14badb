#include "agent/drain/open_calls.h"

#include "agent/drain/block_sink.h"
#include "agent/host/clock.h"
#include "agent/policy/thread_filter.h"

#include <stdlib.h>

/* Copies the open calls of one thread to `calls`, which has space for all. Returns their number. */
static size_t copy(const sj_drain_shared *shared, pid_t tid, sj_stack_frame *calls)
{
    size_t count = 0;
    for (size_t i = 0; i < shared->preopened_count; i++) {
        const sj_open_call_at_attach *call = &shared->preopened[i];
        if (call->tid == tid) {
            calls[count++] = (sj_stack_frame){.function = call->function, .stack = call->stack};
        }
    }
    return count;
}

static void forget(const sj_drain_shared *shared, pid_t tid)
{
    for (size_t i = 0; i < shared->preopened_count; i++) {
        shared->preopened[i].tid = shared->preopened[i].tid == tid ? 0 : shared->preopened[i].tid;
    }
}

static bool has_preopened(const sj_drain_shared *shared, pid_t pid)
{
    return pid == shared->preopened_pid && shared->preopened_count > 0;
}

sj_status sj_open_calls_enter(const sj_process_drain *process, sj_thread_drain *thread)
{
    sj_drain_shared *shared = process->shared;
    if (!has_preopened(shared, process->tracked.pid)) {
        return SJ_OK;
    }
    sj_stack_frame *calls = calloc(shared->preopened_count, sizeof(*calls));
    if (calls == NULL) {
        return SJ_ENOMEM;
    }
    sj_status status = SJ_OK;
    const size_t count = copy(shared, (pid_t)thread->tid, calls);
    if (count > 0 && sj_thread_is_wanted(shared->options.policy, thread->name)) {
        const uint64_t ticks = shared->preopened_ticks;
        thread->start_ticks = ticks < thread->start_ticks ? ticks : thread->start_ticks;
        thread->unflushed = count;
        status = sj_assembler_preopen(thread->assembler, calls, count, ticks);
    }
    free(calls);
    return status;
}

void sj_open_calls_forget(const sj_process_drain *process, const sj_thread_drain *thread)
{
    if (has_preopened(process->shared, process->tracked.pid)) {
        forget(process->shared, (pid_t)thread->tid);
    }
}

size_t sj_open_calls_count(const sj_drain_shared *shared, pid_t pid)
{
    size_t count = 0;
    for (size_t i = 0; has_preopened(shared, pid) && i < shared->preopened_count; i++) {
        count += shared->preopened[i].tid != 0;
    }
    return count;
}

/* A thread with open calls that has recorded nothing. */
typedef struct silent_thread {
    const sj_process_drain *process;
    uint64_t number;
    uint32_t tid;
    uint32_t stream;
    char name[SJ_THREAD_NAME_BYTES];
} silent_thread;

static uint32_t open_stream(void *context, uint64_t stack_address, bool own_stack,
                            uint64_t first_ticks)
{
    silent_thread *thread = context;
    (void)stack_address;
    (void)own_stack;
    (void)first_ticks;
    thread->stream = sj_drain_next_stream(thread->process->shared, thread->tid);
    return thread->stream;
}

static sj_status write_block(void *context, const sj_block_header *header, sj_slice bytes)
{
    const silent_thread *thread = context;
    return sj_block_sink_write(thread->process->shared, header, bytes);
}

static void ignore_mark(void *context, uint32_t mark_index, bool end, uint64_t ticks)
{
    (void)context;
    (void)mark_index;
    (void)end;
    (void)ticks;
}

static sj_status send_thread(const silent_thread *thread, uint64_t ended_ticks)
{
    Sojourn__Thread message = SOJOURN__THREAD__INIT;
    const sj_drain_shared *shared = thread->process->shared;
    uint32_t stream = thread->stream;
    message.session_id = sj_frame_writer_session_bytes(shared->options.writer);
    message.process = thread->process->number;
    message.thread = thread->number;
    message.tid = thread->tid;
    message.name = (char *)(uintptr_t)thread->name;
    message.started_ticks = shared->preopened_ticks;
    message.ended_ticks = ended_ticks;
    message.n_stream = 1;
    message.stream = &stream;
    message.is_main = thread->tid == (uint32_t)thread->process->tracked.pid;
    const sj_slice no_payload = {0};
    return sj_frame_writer_send(shared->options.writer, SJ_FRAME_THREAD, &message.base, no_payload);
}

/* Enters the calls and ends the stream. If the thread has ended and its process runs, its calls
 * count as unwound. */
static sj_status send_calls(silent_thread *thread, const sj_stack_frame *calls, size_t count)
{
    sj_drain_shared *shared = thread->process->shared;
    const uint64_t gone_ticks = thread->process->ended_ticks;
    const uint64_t now_ticks = gone_ticks != 0 ? gone_ticks : sj_clock_ticks();
    const bool has_ended = !sj_tracked_process_has_ended(&thread->process->tracked) &&
                           !sj_tracked_process_has_thread(&thread->process->tracked, thread->tid);
    const sj_assembler_options options = {.session =
                                              *sj_frame_writer_session(shared->options.writer),
                                          .start_ticks = shared->preopened_ticks,
                                          .clock_step = shared->clock_step,
                                          .kept_step = shared->kept_step,
                                          .encoder = shared->encoder};
    const sj_assembler_sink sink = {
        .context = thread, .open_stream = open_stream, .block = write_block, .mark = ignore_mark};
    sj_assembler *assembler;
    SJ_TRY(sj_assembler_new(&options, &sink, &assembler));
    sj_status status = sj_assembler_preopen(assembler, calls, count, shared->preopened_ticks);
    if (status == SJ_OK) {
        status = send_thread(thread, now_ticks);
    }
    if (status == SJ_OK) {
        status = sj_assembler_end(assembler, now_ticks, has_ended, 0);
    }
    sj_assembler_counters counters;
    sj_assembler_get_counters(assembler, &counters);
    sj_assembler_free(assembler);
    if (status == SJ_OK && counters.refused_calls > 0) {
        status = sj_frame_writer_gap(shared->options.writer, SJ_GAP_SPOOL_FULL, thread->number,
                                     thread->stream, counters.refused_calls,
                                     counters.refused_events, shared->preopened_ticks, now_ticks);
    }
    SJ_TRY(status);
    shared->ended.threads++;
    shared->ended.calls += counters.calls;
    shared->ended.unwound += counters.unwound;
    shared->ended.lost_calls += counters.refused_calls;
    shared->ended.lost_events += counters.refused_events;
    return SJ_OK;
}

sj_status sj_open_calls_report_remaining(const sj_process_drain *process)
{
    sj_drain_shared *shared = process->shared;
    if (!has_preopened(shared, process->tracked.pid)) {
        return SJ_OK;
    }
    sj_stack_frame *calls = calloc(shared->preopened_count, sizeof(*calls));
    sj_status status = calls != NULL ? SJ_OK : SJ_ENOMEM;
    for (size_t i = 0; status == SJ_OK && i < shared->preopened_count; i++) {
        const pid_t tid = shared->preopened[i].tid;
        silent_thread thread = {.process = process, .tid = (uint32_t)tid};
        if (tid == 0) {
            continue;
        }
        const size_t count = copy(shared, tid, calls);
        sj_thread_read_name(process->tracked.pid, thread.tid, thread.name);
        if (sj_thread_is_wanted(shared->options.policy, thread.name)) {
            thread.number = sj_drain_next_thread(shared);
            status = send_calls(&thread, calls, count);
        }
        if (status == SJ_OK) {
            forget(shared, tid);
        }
    }
    free(calls);
    return status;
}
